package closurequeue

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// News is what an event of the history tells of closures.
type News struct {
	// At is the place of the event.
	At Position
	// Outcomes are final.
	Outcomes []closure.Outcome
	// Decided is what the queue decided by itself.
	Decided *closure.DecidedOutcomes
}

// Follow returns what the history has after a position, and waits for more. It reads no
// further while each does not return. A server that is away is waited for. The error
// is [ErrRunEnded] at the end of the last execution, that of each, or that of ctx.
func (c *Client) Follow(ctx context.Context, from Position, each func(News) error) error {
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
		var notFound *serviceerror.NotFound
		if errors.As(err, &notFound) {
			// The server has forgotten it; what went on with it perhaps not.
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

// followOne reads one execution to its end, and moves at on to the next one.
// ended: there is no next one, or each does not want to hear of it.
func (c *Client) followOne(ctx context.Context, at *Position, each func(News) error) (ended bool, err error) {
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
		news, err := read.event(e)
		if err != nil {
			return true, err // it would be no better another time
		}
		if e.GetEventId() <= at.Event {
			continue
		}
		if news == nil {
			// Nor is this a place to go on from. At its end a history shows the events
			// of a workflow task that it does not have yet (Temporal server 1.32),
			// and where nothing comes of that, others get their IDs.
			continue
		}
		at.Event = e.GetEventId()
		news.At = *at
		if err := each(*news); err != nil {
			return true, err
		}
	}
	if read.next == "" {
		// An operator may have reset it.
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
	// leases are the events that scheduled one.
	leases map[int64]bool
	next   string // the execution that goes on
}

// follows checks that no event is missing before this one. A server that reads the
// end of a history while it grows adds what came meanwhile, but of that one page only.
func (r *reader) follows(e *historypb.HistoryEvent) error {
	id := e.GetEventId()
	if id > r.seen+1 {
		return fmt.Errorf("the server left out events %d to %d of the history", r.seen+1, id-1)
	}
	r.seen = max(r.seen, id)
	return nil
}

// event returns what an event tells; nil: nothing.
func (r *reader) event(e *historypb.HistoryEvent) (*News, error) {
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
			return &News{Outcomes: final}, nil
		}
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		// Whatever the SDK calls the marker and its details: ours say what they are.
		for _, payloads := range e.GetMarkerRecordedEventAttributes().GetDetails() {
			var d closure.DecidedOutcomes
			if decode(payloads, &d) == nil && d.Type == closure.DecidedType {
				return &News{Outcomes: d.Other, Decided: &d}, nil
			}
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		r.next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return nil, nil
}
