package queues

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// execution is one execution of the queue's workflow.
type execution struct {
	id          string
	status      enumspb.WorkflowExecutionStatus
	events      []*historypb.HistoryEvent
	first, last uint64 // of the closures that ended in it, once it is over
	forgotten   bool
}

func (s *Server) last() *execution { return s.executions[len(s.executions)-1] }

// newExecution begins an execution, and ends the previous one.
func (s *Server) newExecution() {
	id := fmt.Sprintf("execution-%d", len(s.executions)+1)
	if len(s.executions) > 0 {
		x := s.last()
		x.first, x.last = s.machine.Ended()
		x.add(&historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
				WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: id},
			},
		})
		x.status = enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	}
	x := &execution{id: id, status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	x.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED})
	s.executions = append(s.executions, x)
	s.wake()
}

func (x *execution) add(e *historypb.HistoryEvent) int64 {
	e.EventId = int64(len(x.events)) + 1
	x.events = append(x.events, e)
	return e.EventId
}

func (x *execution) close(status enumspb.WorkflowExecutionStatus) {
	x.status = status
	x.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED})
}

func (x *execution) leased(l closure.Lease) int64 {
	return x.add(&historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
		Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: closure.ActivityRunClosures}, Input: encode(l),
			},
		},
	})
}

func (x *execution) returned(lease int64, r closure.LeaseResult) {
	x.add(&historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
		Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: lease, Result: encode(r)},
		},
	})
}

func (x *execution) decided(d closure.DecidedOutcomes) {
	d.Type = closure.DecidedType
	x.add(&historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_MARKER_RECORDED,
		Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{
			MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{
				MarkerName: "any", Details: map[string]*commonpb.Payloads{"other": encode(1), "what": encode(d)},
			},
		},
	})
}

func encode(v any) *commonpb.Payloads {
	p, err := converter.GetDefaultDataConverter().ToPayloads(v)
	if err != nil {
		panic(err)
	}
	return p
}

// ranges returns the range of closures that ended in each execution.
func (s *Server) ranges() []closure.QueueExecution {
	var all []closure.QueueExecution
	for _, x := range s.executions {
		all = append(all, closure.QueueExecution{RunID: x.id, First: x.first, Last: x.last})
	}
	at := &all[len(all)-1]
	at.First, at.Last = s.machine.Ended()
	return all
}

// GetWorkflowHistory reads an execution.
func (s *Server) GetWorkflowHistory(ctx context.Context, _, execution string, follow bool, _ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	if !follow {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reads++
	}
	return &iterator{s: s, ctx: ctx, execution: execution, follow: follow}
}

type iterator struct {
	s         *Server
	ctx       context.Context
	execution string
	follow    bool
	next      int
	transient int // event IDs up to here were shown as events of a workflow task
	event     *historypb.HistoryEvent
	err       error
}

// HasNext waits for an event.
func (i *iterator) HasNext() bool {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	i.event = nil
	for i.err == nil {
		x := i.s.find(i.execution)
		switch {
		case i.s.away:
			i.err = errAway
		case x == nil:
			i.err = errNone
		case i.follow && i.s.still:
			i.err = i.s.await(i.ctx)
		case i.next < len(x.events):
			if i.s.leaveOut && i.next+leftOut < len(x.events) {
				i.s.leaveOut = false
				i.next += leftOut
			}
			i.event = x.events[i.next]
			i.next++
			return true
		case !i.follow || x.status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return false
		case i.transient < len(x.events)+2:
			i.showWorkflowTask(len(x.events))
			return true
		default:
			i.err = i.s.await(i.ctx)
		}
	}
	return true
}

// leftOut is more than the number of events of a workflow task, so that the gap cannot be
// mistaken for one.
const leftOut = 3

// showWorkflowTask shows a workflow task that the history does not have yet, as a server does
// at the end of the history. If the task has no effect, other events get its event IDs.
func (i *iterator) showWorkflowTask(events int) {
	id, what := int64(events)+1, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
	if i.transient > events {
		id, what = id+1, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED
	}
	i.transient = int(id)
	i.event = &historypb.HistoryEvent{EventId: id, EventType: what}
}

// Next is the event.
func (i *iterator) Next() (*historypb.HistoryEvent, error) {
	if i.event == nil {
		return nil, i.err
	}
	return i.event, nil
}

func (s *Server) find(execution string) *execution {
	for _, x := range s.executions {
		if x.id == execution && !x.forgotten {
			return x
		}
	}
	return nil
}
