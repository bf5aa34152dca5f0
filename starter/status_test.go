package starter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/starter/internal/unexecuted"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

func payloads(t *testing.T, v any) *commonpb.Payloads {
	p := must.Get(converter.GetDefaultDataConverter().ToPayloads(v))(t)
	return p
}

func described(t *testing.T, status enumspb.WorkflowExecutionStatus, activities ...*workflowpb.PendingActivityInfo) *workflowservice.DescribeWorkflowExecutionResponse {
	closeTime := timestamppb.New(time.Unix(160, 0))
	if workflowstatus.IsOpen(status) {
		closeTime = nil
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: "iris-1", RunId: "execution"},
			Status:    status, TaskQueue: "queue",
			StartTime: timestamppb.New(time.Unix(100, 0)), CloseTime: closeTime,
			Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"owner": payloads(t, "me@here").Payloads[0]}},
		},
		PendingActivities: activities,
	}
}

// A status combines the run's own status with its activities' heartbeats.
func TestStatusOfAnOpenRun(t *testing.T) {
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		&workflowpb.PendingActivityInfo{
			ActivityId: "a0", State: enumspb.PENDING_ACTIVITY_STATE_STARTED, Attempt: 3,
			HeartbeatDetails: payloads(t, spec.Heartbeat{PID: 42, Host: "host-a", Restarts: 2, LogDir: "/logs", LastOutput: time.Unix(120, 0), Steps: &spec.StepTime{Seconds: 2, Steps: 20}}),
		},
		&workflowpb.PendingActivityInfo{
			ActivityId: "a1", State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, Attempt: 2,
			HeartbeatDetails: payloads(t, spec.Heartbeat{PID: 43, Restarts: 1, LastOutput: time.Unix(150, 0), Steps: &spec.StepTime{Seconds: 9, Steps: 20}}),
			ScheduledTime:    timestamppb.New(time.Unix(200, 0)),
			LastFailure: &failurepb.Failure{Message: "exit code 1", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
				ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: spec.ErrRestart, Details: payloads(t, 4)},
			}},
		},
		&workflowpb.PendingActivityInfo{
			ActivityId: "a3", State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, Attempt: 2, ScheduledTime: timestamppb.New(time.Unix(200, 0)),
			HeartbeatDetails: payloads(t, spec.Heartbeat{PID: 45}),
			LastFailure: &failurepb.Failure{FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
				ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: spec.ErrAway},
			}},
		},
		&workflowpb.PendingActivityInfo{ActivityId: "other"},
	), nil)
	value := mocks.NewEncodedValue(t)
	value.On("Get", mock.Anything).Run(func(args mock.Arguments) {
		*args.Get(0).(*spec.Status) = spec.Status{State: spec.RunRunning, Tasks: []spec.TaskStatus{
			{Name: "worker-0", State: spec.TaskRunning, Activity: "a0"},
			{Name: "worker-1", State: spec.TaskRunning, Activity: "a1"},
			{Name: "worker-2", Rank: 2, State: spec.TaskEnded, Exit: &spec.Exit{LogDir: "/logs/of/the/ended", Steps: &spec.StepTime{Seconds: 1, Steps: 20}}},
			{Name: "worker-3", Rank: 3, State: spec.TaskRunning, Activity: "a3"},
		}}
	}).Return(nil)
	c.On("QueryWorkflow", mock.Anything, "iris-1", "", spec.QueryStatus).Return(value, nil)

	s := must.Get(starter.Get(c, "iris-1", "").Status(t.Context()))(t)
	assert.True(t, s.Open)
	assert.Equal(t, "me@here", s.Owner)
	assert.Equal(t, "execution", s.ExecutionID)
	require.Len(t, s.Tasks, 4)
	assert.Equal(t, 45, s.Tasks[3].PID, "its process continues while the host worker is upgraded")
	assert.Zero(t, s.Tasks[3].NextStart)
	assert.Equal(t, 42, s.Tasks[0].PID)
	assert.Equal(t, 2, s.Tasks[0].Restarts)
	assert.Equal(t, "host-a", s.Tasks[0].Host)
	assert.Zero(t, s.Tasks[0].NextStart)
	assert.Equal(t, time.Unix(120, 0).UTC(), s.Tasks[0].LastOutput)
	assert.Zero(t, s.Tasks[1].LastOutput, "its process has exited")
	assert.Equal(t, time.Unix(120, 0).UTC(), *s.LastOutput())
	assert.Zero(t, s.Tasks[1].PID, "it waits to be started again")
	assert.Equal(t, "exit code 1", s.Tasks[1].LastFailure)
	assert.NotZero(t, s.Tasks[1].NextStart)
	assert.Equal(t, 4, s.Tasks[1].Restarts)
	assert.Zero(t, s.Tasks[2].PID)
	assert.Equal(t, "/logs/of/the/ended", s.Tasks[2].LogDir)
	assert.Nil(t, s.Tasks[1].Steps)
	assert.Equal(t, []spec.Slow{{Task: "worker-0", Host: "host-a", Ratio: 2, Seconds: 2, Others: 1, Steps: 20}}, s.Slow)
	assert.False(t, s.TooFewSteps)
}

// The status of a pending run reports what the run is waiting for.
func TestStatusSaysWhatARunWaitsFor(t *testing.T) {
	pending := func(activity, queue string, failure *failurepb.Failure) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{
			ActivityType: &commonpb.ActivityType{Name: activity}, LastFailure: failure, ExpirationTime: timestamppb.New(time.Unix(200, 0)),
			ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}},
		}
	}
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		pending(hostapi.Name(hostapi.Host.Reserve), "queue/hosts", &failurepb.Failure{Message: "host a has 0 of 1 slots free"}),
		pending(hostapi.Name(hostapi.Host.Reserve), "queue/host/b", nil),
		pending(hostapi.Name(hostapi.Host.Prepare), "queue/host/c/instance", &failurepb.Failure{
			Message: "activity StartToClose timeout", FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{}},
		}),
		pending(hostapi.Name(hostapi.Host.SignalTasks), "queue/host/d/instance", nil),
		pending(hostapi.Name(hostapi.Host.RunTask), "queue/host/e/instance", &failurepb.Failure{
			Message: "SIGKILL does not end it", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: spec.ErrRemains}},
		}),
	), nil)
	value := mocks.NewEncodedValue(t)
	value.On("Get", mock.Anything).Return(nil)
	c.On("QueryWorkflow", mock.Anything, "iris-1", "", spec.QueryStatus).Return(value, nil)
	s := must.Get(starter.Get(c, "iris-1", "").Status(t.Context()))(t)
	until := time.Unix(200, 0).UTC()
	assert.Equal(t, []outcome.Waiting{
		{Host: "b", Queue: "queue/host/b", Until: until},
		{Host: "c", Queue: "queue/host/c/instance", Refusal: "its host worker did not answer in time", Until: until},
		{Host: "e", Queue: "queue/host/e/instance", Refusal: "SIGKILL does not end it"},
		{Queue: "queue/hosts", Refusal: "host a has 0 of 1 slots free", Until: until},
	}, s.Waiting)
}

// historyOf returns a run's history with only the first event.
func historyOf(t *testing.T, s *spec.RunSpec) client.HistoryEventIterator {
	input := must.Get(converter.GetDefaultDataConverter().ToPayloads(s))(t)
	events := mocks.NewHistoryEventIterator(t)
	events.On("Next").Return(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: input},
	}}, nil)
	return events
}

// A terminated run's history contains its tasks' hosts, and the exits before the termination.
func TestStatusOfATerminatedRun(t *testing.T) {
	run := mocks.NewWorkflowRun(t)
	run.On("Get", mock.Anything, mock.Anything).Return(&temporal.TerminatedError{})
	c := mocks.NewClient(t)
	c.On("GetWorkflow", mock.Anything, "iris-1", mock.Anything).Return(run)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", mock.Anything).Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED), nil)
	events := mocks.NewHistoryEventIterator(t)
	events.On("HasNext").Return(false)
	c.On("GetWorkflowHistory", mock.Anything, "iris-1", mock.Anything, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT).Return(events)
	value := mocks.NewEncodedValue(t)
	value.On("Get", mock.Anything).Run(func(args mock.Arguments) {
		*args.Get(0).(*spec.Status) = spec.Status{State: spec.RunRunning, Tasks: []spec.TaskStatus{
			{Name: "worker-0", Host: "a", State: spec.TaskEnded, Exit: &spec.Exit{LogDir: "/logs"}}, {Name: "worker-1", Host: "a", State: spec.TaskRunning},
		}}
	}).Return(nil)
	c.On("QueryWorkflow", mock.Anything, "iris-1", mock.Anything, spec.QueryStatus).Return(value, nil)
	s := must.Get(starter.Get(c, "iris-1", "").Status(t.Context()))(t)
	assert.True(t, s.IsTerminated())
	require.Len(t, s.Tasks, 2)
	assert.Equal(t, "/logs", s.Tasks[0].LogDir)
	assert.Equal(t, spec.TaskEnded, s.Tasks[1].State)
	assert.Nil(t, s.Tasks[1].Exit, "its end is not known")
}

// If a frozen host worker takes a query, another host worker answers the next.
func TestStatusIsAskedAgain(t *testing.T) {
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING), nil)
	value := mocks.NewEncodedValue(t)
	value.On("Get", mock.Anything).Run(func(args mock.Arguments) {
		*args.Get(0).(*spec.Status) = spec.Status{State: spec.RunRunning}
	}).Return(nil)
	c.On("QueryWorkflow", mock.Anything, "iris-1", "", spec.QueryStatus).Return(nil, serviceerror.NewDeadlineExceeded("frozen")).Once()
	c.On("QueryWorkflow", mock.Anything, "iris-1", "", spec.QueryStatus).Return(value, nil).Once()
	s := must.Get(starter.Get(c, "iris-1", "").Status(t.Context()))(t)
	assert.False(t, s.Unanswered)
	assert.Equal(t, spec.RunRunning, s.State)
	assert.Empty(t, s.Absence())
}

// The status reports that a run lacks a worker only if the server confirms it, not if a worker
// is merely slow.
func TestStatusOfARunThatNobodyExecutes(t *testing.T) {
	for absence, failure := range map[string]error{
		"its host worker does not answer": context.DeadlineExceeded,
		"no host worker executes it":      serviceerror.NewFailedPrecondition("no poller seen for task queue recently, worker may be down"),
	} {
		t.Run(absence, func(t *testing.T) { testStatusOfARunThatNobodyExecutes(t, failure, absence) })
	}
}

// The server does not answer queries of a paused run.
func TestStatusOfAPausedRun(t *testing.T) {
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED), nil)
	c.On("QueryWorkflow", mock.Anything, "iris-1", "", spec.QueryStatus).Return(nil, errors.New("query rejected: PAUSED"))
	c.On("GetWorkflowHistory", mock.Anything, "iris-1", "execution", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Return(historyOf(t, validSpec()))
	s := must.Get(starter.Get(c, "iris-1", "").Status(t.Context()))(t)
	assert.True(t, s.Open)
	assert.True(t, s.Ended.IsZero())
	assert.Contains(t, s.Absence(), "paused in Temporal")
}

func testStatusOfARunThatNobodyExecutes(t *testing.T, failure error, absence string) {
	c := mocks.NewClient(t)
	beat := must.Get(converter.GetDefaultDataConverter().ToPayloads(spec.Heartbeat{Host: "host-b", LogDir: "/logs"}))(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		&workflowpb.PendingActivityInfo{ActivityId: "worker-1/0.0", HeartbeatDetails: beat}), nil)
	c.On("QueryWorkflow", mock.Anything, "iris-1", "", spec.QueryStatus).Return(nil, failure)
	c.On("GetWorkflowHistory", mock.Anything, "iris-1", "execution", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Return(historyOf(t, validSpec()))
	s := must.Get(starter.Get(c, "iris-1", "").Status(t.Context()))(t)
	assert.True(t, s.Open)
	assert.True(t, s.Unanswered)
	assert.Equal(t, absence, s.Absence())
	require.Len(t, s.Tasks, 2, "those of the spec")
	assert.Empty(t, s.Tasks[0].State)
	assert.Equal(t, spec.TaskRunning, s.Tasks[1].State)
	assert.Equal(t, "host-b", s.Tasks[1].Host)
	assert.Equal(t, "/logs", s.Tasks[1].LogDir)
}

func TestStatusOfAnEndedRun(t *testing.T) {
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED), nil)
	run := mocks.NewWorkflowRun(t)
	run.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		*args.Get(1).(*spec.RunResult) = spec.RunResult{Verdict: spec.VerdictSucceeded, Tasks: []spec.TaskResult{
			{Name: "worker-0", Host: "host-a", Restarts: 1, Exit: &spec.Exit{PID: 42, LogDir: "/logs", Cause: spec.CauseCompleted}},
		}}
	}).Return(nil)
	c.On("GetWorkflow", mock.Anything, "iris-1", "execution").Return(run)
	s := must.Get(starter.Get(c, "iris-1", "").Status(t.Context()))(t)
	assert.False(t, s.Open)
	assert.Equal(t, spec.RunEnded, s.State)
	assert.Equal(t, time.Minute, s.Ended.Sub(s.Started))
	require.Len(t, s.Tasks, 1)
	assert.Equal(t, spec.TaskEnded, s.Tasks[0].State)
	assert.Equal(t, 42, s.Tasks[0].PID)
	assert.Equal(t, "/logs", s.Tasks[0].LogDir)
	assert.Equal(t, 1, s.Tasks[0].Restarts)
}

// Barriers lists the latest execution's barriers, without those left by an earlier run with the
// same ID. If a round lacks a worker, its ID provides name, round and generation.
func TestBarriersOfTheRunItself(t *testing.T) {
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING), nil)
	c.On("QueryWorkflow", mock.Anything, mock.Anything, "", mock.Anything).Return(nil, context.DeadlineExceeded)
	c.On("GetWorkflowHistory", mock.Anything, "iris-1", "execution", false, mock.Anything).Return(historyOf(t, validSpec()))
	id := spec.BarrierID(spec.RunRef{WorkflowID: "iris-1", RunID: "execution", Generation: 2}, "end of epoch/1", 6)
	c.On("ListWorkflow", mock.Anything, mock.MatchedBy(func(r *workflowservice.ListWorkflowExecutionsRequest) bool {
		return assert.Contains(t, r.GetQuery(), "STARTS_WITH 'iris-1/barrier/execution/'")
	})).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{
		{Execution: &commonpb.WorkflowExecution{WorkflowId: id}},
	}}, nil)
	open := must.Get(barriers.Open(t.Context(), starter.Get(c, "iris-1", "")))(t)
	assert.Equal(t, []barriers.Barrier{{
		Name: "end of epoch/1", Round: 7, Generation: 2, WorkflowID: id, Unanswered: true,
		Waiting: []spec.BarrierWaiter{}, Missing: []barriers.Missing{},
	}}, open)
}

// at describes a run's workflow task at one check.
type at struct {
	scheduled time.Duration // relative to the first check; negative means before it
	state     enumspb.PendingWorkflowTaskState
	attempt   int32
	none      bool // no task
	closed    bool
}

const (
	lies  = enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
	taken = enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED
)

// watched returns a run on the server's queue q. seen returns the run's state after a duration,
// and polled is when the queue was last polled.
func watched(seen func(after time.Duration) at, polled time.Duration) *starter.Run {
	began := time.Now()
	c := &mocks.Client{}
	describe := c.On("DescribeWorkflowExecution", mock.Anything, "x", "")
	describe.Run(func(mock.Arguments) {
		s := seen(time.Since(began))
		info := &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, TaskQueue: "q"}
		if s.closed {
			info.Status, info.CloseTime = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, timestamppb.Now()
		}
		d := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}
		if !s.none && !s.closed {
			d.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{
				State: s.state, ScheduledTime: timestamppb.New(began.Add(s.scheduled)), Attempt: max(s.attempt, 1),
			}
		}
		describe.Return(d, nil)
	})
	c.On("DescribeTaskQueue", mock.Anything, "q", enumspb.TASK_QUEUE_TYPE_WORKFLOW).Return(&workflowservice.DescribeTaskQueueResponse{
		Pollers: []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.New(began.Add(polled))}},
	}, nil)
	return starter.Get(c, "x", "")
}

func TestUnexecuted(t *testing.T) {
	const longAgo, day = -4 * time.Minute, -24 * time.Hour
	always := func(a at) func(time.Duration) at { return func(time.Duration) at { return a } }
	for name, c := range map[string]struct {
		seen   func(after time.Duration) at
		polled time.Duration
		nobody bool
		stuck  int // the attempt in the error
	}{
		"nothing waits":             {seen: always(at{none: true}), polled: longAgo},
		"it has ended":              {seen: always(at{closed: true}), polled: longAgo},
		"nobody ever came":          {seen: always(at{state: lies, scheduled: day}), polled: 2 * day, nobody: true},
		"its host worker is gone":   {seen: always(at{state: lies}), polled: longAgo, nobody: true},
		"its host worker is busy":   {seen: always(at{state: lies}), polled: time.Second, stuck: 1},
		"it fails again and again":  {seen: func(after time.Duration) at { return at{state: lies, scheduled: after, attempt: 7} }, polled: time.Hour, stuck: 7},
		"it is done in a second":    {seen: func(after time.Duration) at { return at{state: taken, none: after > time.Second} }, polled: longAgo},
		"others follow, as they do": {seen: func(after time.Duration) at { return at{state: taken, scheduled: after.Truncate(time.Second)} }, polled: longAgo},
		"who had it cached is gone": {
			seen: func(after time.Duration) at {
				if after < 2*time.Second {
					return at{state: lies}
				}
				return at{state: lies, scheduled: 2 * time.Second}
			},
			polled: longAgo, nobody: true,
		},
		"who has started it was killed": {
			seen: func(after time.Duration) at {
				if after < 5*time.Second {
					return at{state: taken}
				}
				return at{state: lies, scheduled: 5 * time.Second, attempt: 2}
			},
			polled: longAgo, nobody: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				nobody, err := unexecuted.Is(ctx, watched(c.seen, c.polled))
				assert.Equal(t, c.nobody, nobody)
				if c.stuck == 0 {
					require.NoError(t, err)
					return
				}
				var stuck *starter.StuckError
				require.ErrorAs(t, err, &stuck)
				assert.Equal(t, c.stuck, stuck.Attempt)
			})
		})
	}
}

func TestAwaitUnexecuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := watched(func(after time.Duration) at { return at{none: after < time.Hour, state: lies, scheduled: time.Hour} }, -time.Hour)
		require.NoError(t, unexecuted.Await(t.Context(), r))
		assert.GreaterOrEqual(t, time.Since(began), time.Hour)

		r = watched(func(after time.Duration) at { return at{none: true, closed: after > time.Hour} }, -time.Hour)
		var ended *starter.EndedError
		require.ErrorAs(t, unexecuted.Await(t.Context(), r), &ended)
	})
}
