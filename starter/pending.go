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

// PendingRun is a run that waits for capacity, or for the runs in After to end. In the second
// case it does not have a position yet.
type PendingRun struct {
	fleet.Waiting
	After []string `json:"after,omitempty"`
}

// maxAfter limits how many runs [Fleet.Pending] searches for those that wait for other runs.
const maxAfter = 1000

// Pending lists the queue's runs that wait for capacity, in order, followed by those that wait
// for other runs, oldest first.
func (f *Fleet) Pending(ctx context.Context) ([]PendingRun, error) {
	queued, err := f.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	all := []PendingRun{} // encoded in JSON as an empty list, not null
	for _, w := range queued {
		all = append(all, PendingRun{Waiting: w})
	}
	o := ListOptions{Open: true, Facts: true, Host: spec.AttributeNone, Limit: maxAfter}
	open, err := List(ctx, f.client, o)
	if err != nil {
		o.Host = "" // the server does not have the search attributes
		if open, err = List(ctx, f.client, o); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(open, func(a, b Summary) int { return a.Started.Compare(b.Started) })
	for _, s := range open {
		if s.State == outcome.StateWaiting && s.Queue == f.Queue {
			all = append(all, PendingRun{After: s.After, Waiting: fleet.Waiting{
				Run: fleet.Run{WorkflowID: s.RunID, RunID: s.ExecutionID}, Priority: cmp.Or(s.Priority, spec.DefaultPriority),
				Tasks: s.taskCount, Since: s.Started, Why: "waiting for " + shorten.List(s.After, 3),
			}})
		}
	}
	return all, nil
}
