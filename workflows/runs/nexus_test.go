package runs_test

import (
	"testing"
	"time"

	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// called executes a workflow that calls an operation, which ends with the error.
func called(t *testing.T, operation string, end error, call func(workflow.Context) (*spec.RunResult, error)) (result *spec.RunResult, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	reply := &nexus.HandlerStartOperationResultSync[*spec.RunResult]{Value: &spec.RunResult{Verdict: spec.VerdictSucceeded}}
	if end != nil {
		reply = nil
	}
	env.OnNexusOperation(runs.Service, nexus.NewOperationReference[any, *spec.RunResult](operation), mock.Anything, mock.Anything).Return(reply, end)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		result, err = call(ctx)
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	return result, err
}

func run(ctx workflow.Context) (*spec.RunResult, error) {
	return runs.RunNexus(ctx, "endpoint", runs.RunInput{Spec: two(), ID: "iris-1"}, workflow.NexusOperationOptions{ScheduleToCloseTimeout: time.Hour})
}

func TestNexus(t *testing.T) {
	result, err := called(t, runs.OperationRun, nil, run)
	require.NoError(t, err)
	assert.Equal(t, spec.VerdictSucceeded, result.Verdict)
}

func TestErrorsOfOperations(t *testing.T) {
	refused := func(errorType, message string) error {
		return &nexus.OperationError{State: nexus.OperationStateFailed, Message: message, Cause: temporal.NewNonRetryableApplicationError(message, errorType, nil)}
	}
	_, err := called(t, runs.OperationRun, refused(runs.ErrRunning, "it runs"), run)
	var running *runs.RunningError
	require.ErrorAs(t, err, &running)
	assert.Equal(t, "iris-1", running.ID)

	_, err = called(t, runs.OperationWait, refused(runs.ErrNotFound, "no such run"), func(ctx workflow.Context) (*spec.RunResult, error) {
		return runs.WaitNexus(ctx, "endpoint", "iris-1", workflow.NexusOperationOptions{})
	})
	var missing *runs.NotFoundError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, "iris-1", missing.RunID)

	result, err := called(t, runs.OperationRun, refused(spec.ErrInvalidRunSpec, "command: it is missing"), run)
	var ended *runs.Error
	require.ErrorAs(t, err, &ended)
	assert.Equal(t, 2, result.ExitCode)
	assert.Equal(t, spec.ErrInvalidRunSpec, result.ErrorType)

	// An endpoint that fails is not a run that fails.
	result, err = called(t, runs.OperationRun, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeNotFound, "no such operation"), run)
	require.Error(t, err)
	assert.Nil(t, result)
	assert.NotErrorAs(t, err, &ended)
}
