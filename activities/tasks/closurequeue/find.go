package closurequeue

import (
	"context"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Find returns the outcomes of the closures that have ended, even long ago. It does not wait
// for the others. A closure whose outcome is no longer stored has ended with the error
// [closure.ErrNotFound].
func (c *Client) Find(ctx context.Context, ids ...uint64) (map[uint64]closure.Outcome, error) {
	s, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	missing := map[uint64]bool{}
	for _, id := range ids {
		switch {
		case id == 0:
			return nil, refusal("no closure 0; IDs begin at 1")
		case id > s.Counts.Scheduled:
			return nil, refusal("no closure %d; only %d were scheduled", id, s.Counts.Scheduled)
		}
		missing[id] = true
	}
	found := map[uint64]closure.Outcome{}
	// The oldest execution comes first: of two outcomes of a closure the first one counts.
	for _, x := range s.Executions {
		var here []uint64
		for id := range missing {
			if x.First <= id && id <= x.Last {
				here = append(here, id)
			}
		}
		if len(here) == 0 {
			continue
		}
		err := c.search(ctx, x.RunID, func(some closure.Outcomes) bool {
			some.Each(missing, func(o closure.Outcome) {
				found[o.ID] = o
				delete(missing, o.ID)
			})
			return slices.ContainsFunc(here, func(id uint64) bool { return missing[id] })
		})
		switch {
		case servererror.IsNotFound(err):
			for _, id := range here {
				found[id] = lost(id, "the server no longer has the history with its value")
			}
		case err != nil:
			return nil, err
		}
	}
	if s.State == closure.QueueEnded {
		for id := range missing {
			found[id] = lost(id, "the queue ended before the closure")
		}
	}
	return found, nil
}

func lost(id uint64, why string) closure.Outcome {
	return closure.Outcome{ID: id, Kind: closure.OutcomeError, Error: &closure.Error{
		Kind: closure.ErrNotFound, Closure: id, Message: fmt.Sprintf("closure %d has no value: %s", id, why),
	}}
}

// search reads the history of an execution while more returns true.
func (c *Client) search(ctx context.Context, execution string, more func(closure.Outcomes) bool) error {
	var read reader
	events := c.server.GetWorkflowHistory(ctx, c.id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err == nil {
			err = read.follows(e)
		}
		if err != nil {
			return err
		}
		out, err := read.event(e)
		if err != nil {
			return err
		}
		if out != nil && !more(*out) {
			return nil
		}
	}
	return nil
}
