package starter

import (
	"slices"
	"strings"

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
