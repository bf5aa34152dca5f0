package closurequeue

import (
	"context"
	"errors"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// follow starts to follow the history, from the beginning of the execution that is
// open now: what is scheduled here cannot end earlier. It is for holders of mu.
func (q *Queue) follow() {
	if q.following {
		return
	}
	q.following = true
	q.loops.Go(func() {
		if err := q.followAll(q.ctx); q.ctx.Err() == nil {
			q.fail(err)
		}
	})
}

// followAll follows one execution after the other. It returns when the queue has
// ended.
func (q *Queue) followAll(ctx context.Context) error {
	execution, delay := "", firstRetry
	for {
		next, err := q.followOne(ctx, execution)
		switch {
		case err == nil:
			execution, delay = next, firstRetry
			continue
		case errors.Is(err, ErrRunEnded), ctx.Err() != nil:
			return err
		}
		var notFound *serviceerror.NotFound
		if errors.As(err, &notFound) && execution != "" {
			execution = "" // it is forgotten; what went on with it is not
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(delay):
		}
		delay = min(2*delay, maxRetry)
	}
}

// followOne reads one execution to its end, and returns the next one. The execution
// may be read again from its beginning: outcomes count once.
func (q *Queue) followOne(ctx context.Context, execution string) (next string, err error) {
	if execution == "" {
		d, err := q.server.DescribeWorkflowExecution(ctx, q.id, "")
		if err != nil {
			return "", err
		}
		execution = d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	read := reader{each: q.ended}
	events := q.server.GetWorkflowHistory(ctx, q.id, execution, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return "", err
		}
		if err := read.event(e); err != nil {
			return "", err
		}
	}
	if read.next == "" {
		return "", ErrRunEnded
	}
	return read.next, nil
}

// ended takes in what the history tells of closures.
func (q *Queue) ended(outcomes []spec.Outcome, decided *spec.DecidedOutcomes) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range outcomes {
		q.settle(o)
	}
	if decided == nil {
		return
	}
	for _, o := range decided.Other {
		q.settle(o)
	}
	for _, r := range decided.Cancelled {
		// There may be many more of them than anybody here waits for.
		if r[1]-r[0] < uint64(len(q.remotes)) {
			for id := r[0]; id <= r[1]; id++ {
				q.settleIfWaiting(cancelledOutcome(id, decided.Text))
			}
			continue
		}
		for id := range q.remotes {
			if r[0] <= id && id <= r[1] {
				q.settleIfWaiting(cancelledOutcome(id, decided.Text))
			}
		}
	}
	if q.sending > 0 && len(decided.Cancelled) > 0 {
		q.cancelledEarly = append(q.cancelledEarly, *decided)
	}
}

func cancelledOutcome(id uint64, text string) spec.Outcome {
	o := spec.Outcome{ID: id, Kind: spec.OutcomeCancelled}
	if text != "" {
		o.Error = &spec.ClosureError{Kind: spec.ErrClosureCancelled, Message: text, Closure: id}
	}
	return o
}

// settle ends a closure for those who wait for it here. It is for holders of mu.
func (q *Queue) settle(o spec.Outcome) {
	if !q.settleIfWaiting(o) && q.sending > 0 {
		// It may be one whose ID is still on its way.
		if _, known := q.early[o.ID]; !known {
			q.early[o.ID] = o
		}
	}
}

func (q *Queue) settleIfWaiting(o spec.Outcome) bool {
	waiting, ok := q.remotes[o.ID]
	if !ok {
		return false
	}
	delete(q.remotes, o.ID)
	for _, r := range waiting {
		r.settle(o)
	}
	return true
}

// reader finds outcomes in the events of one execution.
type reader struct {
	each func([]spec.Outcome, *spec.DecidedOutcomes)
	// leases are the events that scheduled one.
	leases map[int64]bool
	next   string // the execution that goes on
}

func (r *reader) event(e *historypb.HistoryEvent) error {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == spec.ActivityRunClosures {
			if r.leases == nil {
				r.leases = map[int64]bool{}
			}
			r.leases[e.GetEventId()] = true
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		if !r.leases[a.GetScheduledEventId()] {
			return nil
		}
		delete(r.leases, a.GetScheduledEventId())
		var result spec.LeaseResult
		if err := decode(a.GetResult(), &result); err != nil {
			return err
		}
		final := result.Outcomes[:0]
		for _, o := range result.Outcomes {
			if o.Kind == "" || o.Kind.Final() {
				final = append(final, o)
			}
		}
		r.each(final, nil)
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		a := e.GetMarkerRecordedEventAttributes()
		if a.GetMarkerName() != "SideEffect" {
			return nil
		}
		var d spec.DecidedOutcomes
		if err := decode(a.GetDetails()["data"], &d); err != nil {
			return err
		}
		r.each(nil, &d)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		r.next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return nil
}

func decode(p *commonpb.Payloads, to any) error {
	return converter.GetDefaultDataConverter().FromPayloads(p, to)
}
