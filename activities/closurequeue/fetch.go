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
	w, err := q.whereabouts(ctx)
	if err != nil {
		return nil, err
	}
	if id > w.scheduled {
		return nil, &RefusedError{Message: fmt.Sprintf("there is no closure %d; %d were scheduled", id, w.scheduled)}
	}
	r := newRemote(spec.Closure{})
	q.mu.Lock()
	r.is(id)
	q.remotes[id] = append(q.remotes[id], r)
	q.mu.Unlock()
	forgotten := false
	for i := len(w.executions) - 1; i >= 0; i-- {
		x := w.executions[i]
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
	case w.closed:
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

// whereabouts tells where values are.
type whereabouts struct {
	scheduled  uint64
	executions []spec.QueueExecution
	closed     bool
}

// whereabouts asks the queue, or reads its result: nobody may be there any more to
// answer for a queue that has ended.
func (q *Queue) whereabouts(ctx context.Context) (whereabouts, error) {
	d, err := q.server.DescribeWorkflowExecution(ctx, q.id, "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return whereabouts{}, &RefusedError{Message: fmt.Sprintf("run %s has no queue of closures", q.run.WorkflowID)}
	} else if err != nil {
		return whereabouts{}, err
	}
	switch d.GetWorkflowExecutionInfo().GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		s, err := q.Status(ctx)
		return whereabouts{scheduled: s.Counts.Scheduled, executions: s.Executions}, err
	}
	var r spec.QueueResult
	if err := q.server.GetWorkflow(ctx, q.id, "").Get(ctx, &r); err != nil {
		return whereabouts{}, fmt.Errorf("the queue of run %s left no account of its values: %w", q.run.WorkflowID, err)
	}
	return whereabouts{scheduled: r.Counts.Scheduled, executions: r.Executions, closed: true}, nil
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
