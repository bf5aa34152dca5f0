package starter

import (
	"cmp"
	"context"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// PendingRun is a run that waits for room on hosts, or for the ends of the runs in After. In the
// second case it has no position yet.
type PendingRun struct {
	fleet.Waiting
	After []string `json:"after,omitempty"`
}

// maxAfter bounds the runs that [Fleet.Pending] looks at for those that wait for other runs.
const maxAfter = 1000

// Pending lists the runs of the queue that wait for room, in their order, and after them the runs
// that wait for other runs, the oldest first.
func (f *Fleet) Pending(ctx context.Context) ([]PendingRun, error) {
	queued, err := f.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	all := []PendingRun{} // in JSON an empty list, not null
	for _, w := range queued {
		all = append(all, PendingRun{Waiting: w})
	}
	o := ListOptions{Open: true, Facts: true, Host: spec.AttributeNone, Limit: maxAfter}
	open, err := List(ctx, f.client, o)
	if err != nil {
		o.Host = "" // the server does not know the attributes of runs
		if open, err = List(ctx, f.client, o); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(open, func(a, b Summary) int { return a.Started.Compare(b.Started) })
	for _, s := range open {
		if s.State == outcome.StateWaiting && s.Queue == f.Queue {
			all = append(all, PendingRun{After: s.After, Waiting: fleet.Waiting{
				Run: fleet.Run{WorkflowID: s.RunID, RunID: s.ExecutionID}, Priority: cmp.Or(s.Priority, spec.DefaultPriority),
				Tasks: s.taskCount, Since: s.Started, Why: "the end of " + shorten.List(s.After, 3),
			}})
		}
	}
	return all, nil
}
