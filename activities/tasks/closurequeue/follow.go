package closurequeue

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Follow reads the history after a position, calls each with the final outcomes in every event
// that has some, and waits for more. It does not read ahead while each runs. While the server is
// away, it retries. The error is [ErrRunEnded] at the end of the last execution, the error of
// each, or the error of ctx.
func (c *Client) Follow(ctx context.Context, from Position, each func(closure.Outcomes) error) error {
	at := from
	for again := tries; ; {
		before := at
		ended, err := c.followOne(ctx, &at, each)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case ended:
			return err
		case err == nil || at != before:
			again.Reset()
		}
		if err == nil {
			continue
		}
		if servererror.IsNotFound(err) {
			// The server has forgotten this execution, but perhaps not the one that continued
			// it.
			if here, err := c.Here(ctx); err == nil && here.Execution != at.Execution {
				at = Position{Execution: here.Execution}
				continue
			}
		}
		if err := again.Sleep(ctx); err != nil {
			return err
		}
	}
}

// followOne reads one execution to its end, and moves at to the next one. It returns ended if
// there is no next one, or if each has failed.
func (c *Client) followOne(ctx context.Context, at *Position, each func(closure.Outcomes) error) (ended bool, err error) {
	var read reader
	events := c.server.GetWorkflowHistory(ctx, c.id, at.Execution, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err == nil {
			err = read.follows(e)
		}
		if err != nil {
			return false, err
		}
		out, err := read.event(e)
		if err != nil {
			return true, err // a retry would fail as well
		}
		if e.GetEventId() <= at.Event {
			continue
		}
		if out == nil {
			// The position does not move either. At the end of a history the server shows the
			// events of a workflow task that are not stored yet (Temporal server 1.32). If
			// the workflow task fails, other events get their IDs.
			continue
		}
		at.Event = e.GetEventId()
		out.At = at.String()
		if err := each(*out); err != nil {
			return true, err
		}
	}
	if read.next == "" {
		// An operator may have reset the workflow.
		d, err := c.server.DescribeWorkflowExecution(ctx, c.id, "")
		if err != nil {
			return false, err
		}
		info := d.GetWorkflowExecutionInfo()
		if read.next = info.GetExecution().GetRunId(); read.next == at.Execution || !isOpen(info.GetStatus()) {
			return true, ErrRunEnded
		}
	}
	*at = Position{Execution: read.next}
	return false, nil
}

// reader finds outcomes in the events of one execution.
type reader struct {
	seen int64 // the highest event ID
	// leases has the IDs of the events that scheduled a lease.
	leases map[int64]bool
	next   string // the next execution of the queue
}

// follows checks that no event is missing before e. If a history grows while the server reads
// its end, the server adds new events, but no more than a single page.
func (r *reader) follows(e *historypb.HistoryEvent) error {
	id := e.GetEventId()
	if id > r.seen+1 {
		return fmt.Errorf("the server left out events %d to %d of the history", r.seen+1, id-1)
	}
	r.seen = max(r.seen, id)
	return nil
}

// event returns the outcomes in an event, or nil without one.
func (r *reader) event(e *historypb.HistoryEvent) (*closure.Outcomes, error) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == closure.ActivityRunClosures {
			if r.leases == nil {
				r.leases = map[int64]bool{}
			}
			r.leases[e.GetEventId()] = true
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		if !r.leases[a.GetScheduledEventId()] {
			return nil, nil
		}
		delete(r.leases, a.GetScheduledEventId())
		var result closure.LeaseResult
		if err := decode(a.GetResult(), &result); err != nil {
			return nil, err
		}
		final := result.Outcomes[:0]
		for _, o := range result.Outcomes {
			if o.Kind == "" || o.Kind.Final() {
				final = append(final, o)
			}
		}
		if len(final) > 0 {
			return &closure.Outcomes{Outcomes: final}, nil
		}
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		// The type is in our own details, because the SDK chooses the name of the marker.
		for _, payloads := range e.GetMarkerRecordedEventAttributes().GetDetails() {
			var d closure.DecidedOutcomes
			if decode(payloads, &d) == nil && d.Type == closure.DecidedType {
				out := &closure.Outcomes{Outcomes: d.Other}
				for _, r := range d.Cancelled {
					out.Cancelled = append(out.Cancelled, closure.Cancelled{First: r[0], Last: r[1], Text: d.Text})
				}
				return out, nil
			}
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		r.next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return nil, nil
}
