package queue_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
)

// Messages that arrive while a queue continues as new are in the same workflow task as the end
// of its last wait: the server refuses a command to close a workflow that has new events, and
// repeats the task with them.
func TestQueueTakesNewsAlongWhenItContinuesAsNew(t *testing.T) {
	history := historyOf(t, continuedQueue)
	message := closure.ServingMessage{
		Host: "host-b", Queue: "queue-b", Seq: 1, Broker: "life",
		Serving: []closure.ServingTask{{Task: "worker-2", Process: "p", Slots: 1}},
	}
	status := func(t *testing.T, news ...*historypb.HistoryEvent) closure.QueueStatus {
		return continuedWith(t, history, news...)
	}
	before := status(t)
	require.Len(t, before.Workers, 2)

	t.Run("who serves", func(t *testing.T) {
		s := status(t, signaled(t, message))
		require.Len(t, s.Workers, 3)
		assert.Equal(t, "worker-2", s.Workers[2].Task)
	})
	t.Run("several messages", func(t *testing.T) {
		later := message
		later.Seq, later.Host = 2, "host-c"
		assert.Len(t, status(t, signaled(t, message), signaled(t, later)).Workers, 4)
	})
	t.Run("the result of a lease", func(t *testing.T) {
		event, lease := openLease(t, history)
		s := status(t, completed(t, event, closure.LeaseResult{Outcomes: []closure.Outcome{{ID: lease.Closures[0].ID}}})...)
		assert.Equal(t, before.Counts.Finished+1, s.Counts.Finished)
		assert.Equal(t, before.Counts.Executing-1, s.Counts.Executing)
	})
}

// continuedQueue is the history of a queue that continued as new.
const continuedQueue = "../../testdata/replay/v0.5.0/closures-continued.json"

func historyOf(t *testing.T, file string) *historypb.History {
	t.Helper()
	f := must.Get(os.Open(file))(t)
	defer f.Close()
	history := must.Get(client.HistoryFromJSON(f, client.HistoryJSONOptions{}))(t)
	return history
}

// openLease returns a lease that is open at the end of the history, and its event.
func openLease(t *testing.T, history *historypb.History) (event int64, lease closure.Lease) {
	t.Helper()
	open := map[int64]*commonpb.Payloads{}
	for _, e := range history.Events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == closure.ActivityRunClosures {
			open[e.EventId] = a.Input
		}
		delete(open, e.GetActivityTaskStartedEventAttributes().GetScheduledEventId())
	}
	require.NotEmpty(t, open)
	event = slices.Sorted(maps.Keys(open))[0]
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(open[event], &lease))
	require.NotEmpty(t, lease.Closures)
	return event, lease
}

// continuedWith returns the status of a queue restored from the state it passes on, if its last
// workflow task had contained these events as well.
func continuedWith(t *testing.T, history *historypb.History, news ...*historypb.HistoryEvent) closure.QueueStatus {
	t.Helper()
	history = proto.CloneOf(history)
	last := len(history.Events) - 5 // scheduled, started, completed, that it is not too large, and the end
	require.Equal(t, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, history.Events[last].EventType)
	task := history.Events[last:]
	history.Events = slices.Concat(history.Events[:last], news, task)
	for i, e := range history.Events {
		e.EventId = int64(i) + 1
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && a.StartedEventId == 0 {
			a.StartedEventId = int64(i)
		}
	}
	task[1].GetWorkflowTaskStartedEventAttributes().ScheduledEventId = task[0].EventId
	task[2].GetWorkflowTaskCompletedEventAttributes().ScheduledEventId = task[0].EventId
	task[2].GetWorkflowTaskCompletedEventAttributes().StartedEventId = task[1].EventId
	task[3].GetMarkerRecordedEventAttributes().WorkflowTaskCompletedEventId = task[2].EventId
	task[4].GetWorkflowExecutionContinuedAsNewEventAttributes().WorkflowTaskCompletedEventId = task[2].EventId

	var end continuing
	r := must.Get(worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: []interceptor.WorkerInterceptor{&end}}))(t)
	r.RegisterWorkflowWithOptions(queue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
	require.NoError(t, r.ReplayWorkflowHistory(nil, history))
	require.Len(t, end.args, 2, "it has continued as new")
	next := must.Get(queue.Unpack(end.args[1].([]byte)))(t)
	return rules.Restore(rules.ConfigOf(end.args[0].(closure.QueueInput)), next.Queue).Status()
}

func signaled(t *testing.T, m closure.ServingMessage) *historypb.HistoryEvent {
	t.Helper()
	input := must.Get(converter.GetDefaultDataConverter().ToPayloads(m))(t)
	return &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: closure.SignalServing, Input: input},
		},
	}
}

func completed(t *testing.T, scheduled int64, result closure.LeaseResult) []*historypb.HistoryEvent {
	t.Helper()
	out := must.Get(converter.GetDefaultDataConverter().ToPayloads(result))(t)
	return []*historypb.HistoryEvent{
		{
			EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED,
			Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
				ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled, Attempt: 1},
			},
		},
		{
			EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
			Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled, Result: out},
			},
		},
	}
}

// continuing records the state that a workflow passes to its next execution.
type continuing struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	args []any
}

func (c *continuing) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	c.WorkflowInboundInterceptorBase.Next = next
	return c
}

func (c *continuing) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	c.WorkflowOutboundInterceptorBase.Next = outbound
	return c.WorkflowInboundInterceptorBase.Init(c)
}

func (c *continuing) NewContinueAsNewError(ctx workflow.Context, wfn any, args ...any) error {
	c.args = args
	return c.WorkflowOutboundInterceptorBase.NewContinueAsNewError(ctx, wfn, args...)
}

// The history records whether a queue is too large to continue as new, since the size that gzip
// packs it to may change with the version of Go.
func TestWhetherAQueueIsTooLargeIsRecorded(t *testing.T) {
	history := historyOf(t, continuedQueue)
	replay := func() error {
		r := worker.NewWorkflowReplayer()
		r.RegisterWorkflowWithOptions(queue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
		return r.ReplayWorkflowHistory(nil, history)
	}
	require.NoError(t, replay())
	var last *historypb.HistoryEvent
	for _, e := range history.Events {
		if e.GetMarkerRecordedEventAttributes().GetMarkerName() == "SideEffect" {
			last = e
		}
	}
	require.NotNil(t, last)
	data := must.Get(converter.GetDefaultDataConverter().ToPayloads(closure.DecidedOutcomes{TooLarge: true}))(t)
	last.GetMarkerRecordedEventAttributes().Details["data"] = data
	require.ErrorContains(t, replay(), "nondeterministic", "it would have stayed")
}
