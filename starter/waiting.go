package starter

import (
	"context"
	"slices"
	"strings"

	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// waiting finds, in its pending activities, what a run is waiting for: hosts for its tasks, or
// processes that survive SIGKILL.
func waiting(queue string, pending []*workflowpb.PendingActivityInfo) []outcome.Waiting {
	var all []outcome.Waiting
	for _, a := range pending {
		if run, ok := strings.CutPrefix(a.GetActivityId(), spec.AfterActivity); ok {
			all = append(all, outcome.Waiting{After: run})
			continue
		}
		remains := a.GetLastFailure().GetApplicationFailureInfo().GetType() == spec.ErrRemains
		if !placesTasks(a) && !remains {
			continue
		}
		w := outcome.Waiting{Queue: a.GetActivityOptions().GetTaskQueue().GetName(), Refusal: failureText(a.GetLastFailure())}
		if host, ok := strings.CutPrefix(w.Queue, spec.HostQueue(queue, "")); ok {
			w.Host, _, _ = strings.Cut(host, "/")
		}
		var fetching spec.Fetching
		if !remains && decode(a.GetHeartbeatDetails(), &fetching) {
			w.Fetching = &fetching
		}
		if t := a.GetExpirationTime(); t != nil && !remains {
			w.Until = t.AsTime()
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b outcome.Waiting) int { return strings.Compare(a.Queue, b.Queue) })
	return all
}

// placesTasks reports whether an activity prepares a host for a run's tasks.
func placesTasks(a *workflowpb.PendingActivityInfo) bool {
	name := a.GetActivityType().GetName()
	return name == hostapi.Name(hostapi.Host.Reserve) || name == hostapi.Name(hostapi.Host.Prepare)
}

// waitingInFleet finds what a run is waiting for in its fleet's queue.
func waitingInFleet(s *Status, ctx context.Context, c client.Client) {
	if s.State != spec.RunPlacing && s.State != spec.RunRestarting || len(s.Waiting) > 0 || spec.IsPrivateQueue(s.Queue) {
		return
	}
	queue, err := GetFleet(c, s.Queue).Waiting(ctx)
	if err != nil {
		s.Waiting = []outcome.Waiting{{Queue: s.Queue, Refusal: err.Error()}}
		return
	}
	for _, w := range queue {
		if w.Run.WorkflowID == s.RunID && w.Run.RunID == s.ExecutionID {
			s.Waiting = []outcome.Waiting{{Queue: s.Queue, Refusal: w.Why, Position: w.Position}}
		}
	}
}

// failureText returns, for display, why an activity's attempt failed.
func failureText(f *failurepb.Failure) string {
	if f.GetTimeoutFailureInfo() != nil {
		return spec.NoAnswerText
	}
	return f.GetMessage()
}
