package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// firstState derives an open run's state from its search attributes, which name the hosts. A
// server without these attributes does not know the priority either.
func (s *Summary) firstState() string {
	if len(s.Hosts) == 0 && s.Priority > 0 && !s.Sweep {
		return outcome.StatePending
	}
	return outcome.StateRunning
}

// observe derives an open run's state from its pending activities.
func (s *Summary) observe(pending []*workflowpb.PendingActivityInfo) {
	placing := len(pending) == 0
	for _, a := range pending {
		if run, ok := strings.CutPrefix(a.GetActivityId(), spec.AfterActivity); ok {
			s.After = append(s.After, run)
		} else if placesTasks(a) {
			placing = true
		} else {
			placing = false
			break
		}
	}
	slices.Sort(s.After)
	switch {
	case s.State == outcome.StatePaused:
	case len(s.After) > 0:
		s.State = outcome.StateWaiting
	case s.Sweep:
	case placing && !spec.IsPrivateQueue(s.Queue):
		s.State = outcome.StatePending // a private queue places its tasks without an activity
	case !placing:
		s.State = outcome.StateRunning
	}
}

// Summary returns what the server itself records about the run, without asking a worker.
// ExecutionID is the first execution. A failed run's verdict is empty.
func (r *Run) Summary(ctx context.Context) (Summary, error) {
	d, err := r.describe(ctx)
	switch {
	case isNotFound(err):
		return Summary{}, &NotFoundError{RunID: r.ID}
	case err != nil:
		return Summary{}, fmt.Errorf("describe run %s: %w", r.ID, err)
	}
	info := d.GetWorkflowExecutionInfo()
	s := summarise(info)
	s.ExecutionID = r.firstOf(info).RunID
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
		s.Verdict = spec.VerdictCancelled
	}
	return s, nil
}
