package starter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ends returns a client with a run that fails with these errors, one after another.
func ends(t *testing.T, errs ...error) *mocks.Client {
	run := mocks.NewWorkflowRun(t)
	for _, err := range errs {
		run.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
			args.Get(1).(*spec.RunResult).Verdict = spec.VerdictSucceeded
		}).Return(err).Once()
	}
	c := mocks.NewClient(t)
	c.On("GetWorkflow", mock.Anything, "iris-1", "").Return(run)
	return c
}

// fromWire returns err as a client receives it, with encoded details.
func fromWire(err error) error {
	c := temporal.GetDefaultFailureConverter()
	return c.FailureToError(c.ErrorToFailure(err))
}

func failed(code int) *spec.RunResult {
	return &spec.RunResult{
		Verdict: spec.VerdictFailed, ErrorType: spec.ErrUnexpectedExit, ExitCode: code,
		Message: "Subprocess worker-0 exited with exit code 10. See logs for details.",
		Tasks:   []spec.TaskResult{{Name: "worker-0"}},
	}
}

func TestWait(t *testing.T) {
	cancelled := &spec.RunResult{Verdict: spec.VerdictCancelled, ExitCode: 130, Tasks: []spec.TaskResult{}}
	for name, c := range map[string]struct {
		err  error
		want *spec.RunResult
	}{
		"failed with details": {
			temporal.NewNonRetryableApplicationError("text", spec.ErrUnexpectedExit, nil, failed(10)), failed(10),
		},
		"failed without": {
			temporal.NewNonRetryableApplicationError("invalid run spec: no", spec.ErrInvalidRunSpec, nil),
			&spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: spec.ErrInvalidRunSpec, Message: "invalid run spec: no", ExitCode: 2},
		},
		"a program that is not there": {
			temporal.NewNonRetryableApplicationError("no", spec.ErrInvalidRunSpec, nil, spec.RunResult{ExitCode: 127}),
			&spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: spec.ErrInvalidRunSpec, Message: "no", ExitCode: 127},
		},
		"failed with details of something else": {
			temporal.NewNonRetryableApplicationError("panic", "PanicError", nil, "a text"),
			&spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: "PanicError", Message: "panic", ExitCode: 125},
		},
		"cancelled": {temporal.NewCanceledError(cancelled), cancelled},
		"cancelled before anything": {
			temporal.NewCanceledError(),
			&spec.RunResult{Verdict: spec.VerdictCancelled, Message: "the run was cancelled before it started", ExitCode: 130},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := starter.Get(ends(t, fromWire(c.err)), "iris-1", "").Wait(t.Context())
			assert.Equal(t, c.want, result)
			var failed *starter.Error
			require.ErrorAs(t, err, &failed)
			assert.Same(t, result, failed.Result)
		})
	}
}

func TestWaitSucceeds(t *testing.T) {
	result := must.Get(starter.Get(ends(t, nil), "iris-1", "").Wait(t.Context()))(t)
	assert.Equal(t, spec.VerdictSucceeded, result.Verdict)
}

// A temporary outage of the server does not end the run.
func TestWaitOutlastsAnOutage(t *testing.T) {
	result := must.Get(starter.Get(ends(t, serviceerror.NewUnavailable("gone"), nil), "iris-1", "").Wait(t.Context()))(t)
	assert.Equal(t, spec.VerdictSucceeded, result.Verdict)
}

func TestWaitForNoRun(t *testing.T) {
	_, err := starter.Get(ends(t, serviceerror.NewNotFound("no")), "iris-1", "").Wait(t.Context())
	var missing *starter.NotFoundError
	require.ErrorAs(t, err, &missing)
	assert.Contains(t, err.Error(), "no run \"iris-1\"")
}

// Reports used to begin with "workflow execution error (type: ClusterRun, workflowID: …".
func TestARunWhoseWorkflowFailedHasNoInternalsInItsReport(t *testing.T) {
	for want, broken := range map[string]func(workflow.Context) error{
		"out of order":       func(workflow.Context) error { panic("out of order") },
		"a failed assertion": func(workflow.Context) error { return errors.New("a failed assertion") },
	} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.ExecuteWorkflow(broken)
		result, _ := starter.Get(ends(t, env.GetWorkflowError()), "iris-1", "").Wait(t.Context())
		assert.Equal(t, want, result.Message)
		assert.Equal(t, 125, result.ExitCode)
	}
}

func TestWaitForATerminatedRun(t *testing.T) {
	c := ends(t, &temporal.TerminatedError{})
	events := mocks.NewHistoryEventIterator(t)
	events.On("HasNext").Return(true).Once()
	events.On("Next").Return(&historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{
				Reason: "its owner has exited", Identity: "me@here",
			},
		},
	}, nil).Once()
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED), nil)
	c.On("GetWorkflowHistory", mock.Anything, "iris-1", "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT).Return(events)
	result, err := starter.Get(c, "iris-1", "").Wait(t.Context())
	assert.Nil(t, result)
	var terminated *starter.TerminatedError
	require.ErrorAs(t, err, &terminated)
	assert.EqualError(t, err, "run iris-1 was terminated by me@here (its owner has exited) and left no result")
}

func TestRequestErrors(t *testing.T) {
	refusal := temporal.NewNonRetryableApplicationError("worker-1 is running; `clusterrun restart` restarts it", "Refused", nil)
	c := mocks.NewClient(t)
	c.On("UpdateWorkflow", mock.Anything, mock.Anything).Return(nil, refusal).Once()
	_, err := starter.Ask(t.Context(), starter.Get(c, "iris-1", ""), spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-1"})
	require.EqualError(t, err, "worker-1 is running; `clusterrun restart` restarts it")

	// A run has less time to accept a request than to answer it.
	c.On("UpdateWorkflow", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		assert.Equal(t, client.WorkflowUpdateStageAccepted, args.Get(1).(client.UpdateWorkflowOptions).WaitForStage)
		<-args.Get(0).(context.Context).Done()
	}).Return(nil, context.DeadlineExceeded).Once()
	synctest.Test(t, func(t *testing.T) {
		_, err := starter.Ask(t.Context(), starter.Get(c, "iris-1", ""), spec.UpdateSignalTask, spec.SignalRequest{})
		var unanswered *starter.UnansweredError
		require.ErrorAs(t, err, &unanswered)
	})

	problems := []spec.TaskProblem{{Task: "worker-9", Message: "worker-9 is not a task of this run"}}
	refusal = temporal.NewNonRetryableApplicationError("worker-9 is not a task of this run", "InvalidRequest", nil, problems)
	c.On("UpdateWorkflow", mock.Anything, mock.Anything).Return(nil, refusal).Once()
	_, err = starter.Ask(t.Context(), starter.Get(c, "iris-1", ""), spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-9"}})
	var refused *starter.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.True(t, refused.Invalid)
	assert.Equal(t, problems, refused.Tasks)

	c.On("CancelWorkflow", mock.Anything, "iris-1", "").Return(serviceerror.NewNotFound("already completed")).Twice()
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED), nil).Once()
	var late *starter.EndedError
	require.ErrorAs(t, starter.Get(c, "iris-1", "").Cancel(t.Context()), &late)

	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(nil, errors.New("not found")).Once()
	var missing *starter.NotFoundError
	require.ErrorAs(t, starter.Get(c, "iris-1", "").Cancel(t.Context()), &missing)
}

// The first execution's ID reaches a run that continued as new. Cancel needs care, because the
// server accepts it for a closed execution.
func TestRequestsFollowTheRun(t *testing.T) {
	continued := mocks.NewHistoryEventIterator(t)
	continued.On("HasNext").Return(true)
	continued.On("Next").Return(&historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
			WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: "second"},
		},
	}, nil)
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "first").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW), nil)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "second").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING), nil)
	c.On("GetWorkflowHistory", mock.Anything, "iris-1", mock.Anything, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT).Return(continued)
	c.On("CancelWorkflow", mock.Anything, "iris-1", "first").Return(nil).Once()
	c.On("CancelWorkflow", mock.Anything, "iris-1", "second").Return(nil).Once()
	require.NoError(t, starter.Get(c, "iris-1", "first").Cancel(t.Context()))

	c.On("TerminateWorkflow", mock.Anything, "iris-1", "first", "why").Return(serviceerror.NewNotFound("already completed")).Once()
	c.On("TerminateWorkflow", mock.Anything, "iris-1", "second", "why").Return(nil).Once()
	require.NoError(t, starter.Get(c, "iris-1", "first").Terminate(t.Context(), "why"))
}

// A server under load loses the notification that a run has ended.
func TestWaitNoticesAnEndThatNobodyTold(t *testing.T) {
	run := mocks.NewWorkflowRun(t)
	run.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		<-args.Get(0).(context.Context).Done()
	}).Return(context.Canceled).Once()
	run.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		args.Get(1).(*spec.RunResult).Verdict = spec.VerdictSucceeded
	}).Return(nil).Once()
	c := mocks.NewClient(t)
	c.On("GetWorkflow", mock.Anything, "iris-1", "").Return(run)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED), nil)
	result := must.Get(starter.Get(c, "iris-1", "").Wait(t.Context()))(t)
	assert.Equal(t, spec.VerdictSucceeded, result.Verdict)
}

// Wait reports once that the server is away, and once that it is back.
func TestWaitTellsOfAnOutage(t *testing.T) {
	run := mocks.NewWorkflowRun(t)
	run.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		<-args.Get(0).(context.Context).Done()
	}).Return(context.Canceled).Once()
	run.On("Get", mock.Anything, mock.Anything).Return(nil).Once()
	c := mocks.NewClient(t)
	c.On("GetWorkflow", mock.Anything, "iris-1", "").Return(run)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(nil, serviceerror.NewUnavailable("gone")).Times(3)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING), nil)
	c.On("DescribeTaskQueue", mock.Anything, mock.Anything, enumspb.TASK_QUEUE_TYPE_WORKFLOW).Return(&workflowservice.DescribeTaskQueueResponse{
		Pollers: []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.Now()}},
	}, nil)
	var told []string
	_, err := starter.Get(c, "iris-1", "").WaitNotify(t.Context(), func(err error) {
		if err != nil {
			told = append(told, "away")
		} else {
			told = append(told, "back")
		}
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"away", "back"}, told)
}

func TestWaitTellsOfAStuckRun(t *testing.T) {
	run := mocks.NewWorkflowRun(t)
	run.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		<-args.Get(0).(context.Context).Done()
	}).Return(context.Canceled).Once()
	run.On("Get", mock.Anything, mock.Anything).Return(nil).Once()
	c := mocks.NewClient(t)
	c.On("GetWorkflow", mock.Anything, "iris-1", "").Return(run)
	stuck := described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)
	stuck.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{State: enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED, Attempt: 9}
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(stuck, nil).Twice()
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED), nil)
	var told []error
	_, err := starter.Get(c, "iris-1", "").WaitNotify(t.Context(), func(err error) { told = append(told, err) })
	require.NoError(t, err)
	assert.Equal(t, []error{&starter.StuckError{RunID: "iris-1", Attempt: 9}, nil}, told)
}

// A paused run has not ended, although the SDK receives an event immediately.
func TestWaitForAPausedRun(t *testing.T) {
	run := mocks.NewWorkflowRun(t)
	run.On("Get", mock.Anything, mock.Anything).Return(errors.New("unexpected event type WorkflowExecutionPaused")).Once()
	run.On("Get", mock.Anything, mock.Anything).Return(nil).Once()
	c := mocks.NewClient(t)
	c.On("GetWorkflow", mock.Anything, "iris-1", "").Return(run)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED), nil)
	_, err := starter.Get(c, "iris-1", "").Wait(t.Context())
	require.NoError(t, err)
}
