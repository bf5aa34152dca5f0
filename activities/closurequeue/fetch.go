package closurequeue

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Fetch is the value of a closure by its ID, however old. One that ended earlier is
// read from the history of the execution in which it did; one that has not ended is
// waited for by the [Remote].
func (q *Queue) Fetch(ctx context.Context, id uint64) (*Remote, error) {
	if id == 0 {
		return nil, &RefusedError{Message: "there is no closure 0; their IDs begin at 1"}
	}
	s, err := q.Status(ctx)
	if err != nil {
		return nil, err
	}
	if id > s.Counts.Scheduled {
		return nil, &RefusedError{Message: fmt.Sprintf("there is no closure %d; %d were scheduled", id, s.Counts.Scheduled)}
	}
	r := newRemote(spec.Closure{})
	q.mu.Lock()
	r.is(id)
	q.remotes[id] = append(q.remotes[id], r)
	q.mu.Unlock()
	forgotten := false
	for i := len(s.Executions) - 1; i >= 0; i-- {
		x := s.Executions[i]
		if x.First > id || x.Last < id {
			continue
		}
		found, err := q.search(ctx, x.RunID, id)
		var notFound *serviceerror.NotFound
		switch {
		case errors.As(err, &notFound):
			forgotten = true
		case err != nil:
			return nil, err
		case found:
			return r, nil
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case forgotten:
		q.settleIfWaiting(lost(id, "the server does not keep the history any more that has its value"))
	case s.State == spec.QueueEnded:
		q.settleIfWaiting(lost(id, "the queue ended before it did"))
	default:
		q.follow()
	}
	return r, nil
}

func lost(id uint64, why string) spec.Outcome {
	return spec.Outcome{ID: id, Kind: spec.OutcomeError, Error: &spec.ClosureError{
		Kind: spec.ErrClosureNotFound, Closure: id, Message: fmt.Sprintf("closure %d has no value: %s", id, why),
	}}
}

// search reads an execution until it finds the outcome of a closure that is waited
// for.
func (q *Queue) search(ctx context.Context, execution string, id uint64) (found bool, err error) {
	read := reader{each: func(outcomes []spec.Outcome, d *spec.DecidedOutcomes) {
		q.ended(outcomes, d)
		q.mu.Lock()
		_, waiting := q.remotes[id]
		q.mu.Unlock()
		found = !waiting
	}}
	events := q.server.GetWorkflowHistory(ctx, q.id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() && !found {
		e, err := events.Next()
		if err != nil {
			return false, err
		}
		if err := read.event(e); err != nil {
			return false, err
		}
	}
	return found, nil
}
