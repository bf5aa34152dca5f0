package runs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func two() *spec.RunSpec {
	n := 2
	return &spec.RunSpec{Name: "iris", Command: []string{"true"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: &n}}}
}

// caller is a workflow that executes a run, with a workflow in the role of ClusterRun.
type caller struct {
	*testsuite.TestWorkflowEnvironment
	info  *workflow.Info // of the run
	input *spec.RunSpec  // of the run
}

func newCaller(t *testing.T, run func(workflow.Context) (*spec.RunResult, error)) *caller {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	c := &caller{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment()}
	c.RegisterWorkflowWithOptions(func(ctx workflow.Context, s *spec.RunSpec) (*spec.RunResult, error) {
		c.info, c.input = workflow.GetInfo(ctx), s
		return run(ctx)
	}, workflow.RegisterOptions{Name: spec.WorkflowType})
	return c
}

// execute executes a workflow. The SDK would mistake two function literals for the same workflow.
func (c *caller) execute(f func(workflow.Context) error) {
	c.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: "caller"})
	c.ExecuteWorkflow("caller")
}

// call executes a workflow that executes a run with these options.
func (c *caller) call(o runs.Options) (*spec.RunResult, error) {
	result, err := (*spec.RunResult)(nil), errors.New("the caller ended early")
	c.execute(func(ctx workflow.Context) error {
		result, err = runs.Run(ctx, two(), o)
		return err
	})
	return result, err
}

func TestRunReturnsTheResult(t *testing.T) {
	c := newCaller(t, func(workflow.Context) (*spec.RunResult, error) {
		return &spec.RunResult{Verdict: spec.VerdictSucceeded, Tasks: []spec.TaskResult{{Name: "worker-0", Value: []byte(`{"loss":1}`)}}}, nil
	})
	result := must.Get(c.call(runs.Options{}))(t)
	assert.JSONEq(t, `{"loss":1}`, string(result.Tasks[0].Value))
	assert.Equal(t, two(), c.input)
	assert.Regexp(t, `^iris-[a-z0-9]{8}$`, c.info.WorkflowExecution.ID)
	assert.Equal(t, spec.TaskQueue, c.info.TaskQueueName)
	assert.Equal(t, spec.WorkflowTaskTimeout, c.info.WorkflowTaskTimeout)
}

func TestRunTakesItsOptions(t *testing.T) {
	c := newCaller(t, func(workflow.Context) (*spec.RunResult, error) {
		return &spec.RunResult{Verdict: spec.VerdictSucceeded}, nil
	})
	_, err := c.call(runs.Options{ID: "mine", Queue: "gpus"})
	require.NoError(t, err)
	assert.Equal(t, "mine", c.info.WorkflowExecution.ID)
	assert.Equal(t, "gpus", c.info.TaskQueueName)
}

// A run's error contains its result.
func TestErrorsOfRuns(t *testing.T) {
	failed := &spec.RunResult{
		Verdict: spec.VerdictFailed, Message: "worker-1 failed", ErrorType: spec.ErrSubprocess, ExitCode: 3,
		FirstFailure: &spec.Failure{Task: "worker-1", Rank: 1, Exit: spec.Exit{ExitCode: 3, Cause: spec.CauseOrigin, Message: "ValueError: shard 3"}},
	}
	late := &spec.RunResult{Verdict: spec.VerdictTimedOut, Message: "the run exceeded its timeout", ErrorType: spec.ErrSubprocessTimeout, ExitCode: 124}
	for name, c := range map[string]struct {
		err  error
		want *spec.RunResult
	}{
		"failed":    {temporal.NewApplicationErrorWithOptions(failed.Message, failed.ErrorType, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{failed}}), failed},
		"timed out": {temporal.NewApplicationErrorWithOptions(late.Message, late.ErrorType, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{late}}), late},
		"a bad spec": {
			temporal.NewNonRetryableApplicationError("command: it is missing", spec.ErrInvalidRunSpec, nil),
			&spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: spec.ErrInvalidRunSpec, Message: "command: it is missing", ExitCode: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := newCaller(t, func(workflow.Context) (*spec.RunResult, error) { return nil, c.err }).call(runs.Options{ID: "iris-1"})
			var ended *runs.Error
			require.ErrorAs(t, err, &ended)
			assert.EqualError(t, err, c.want.Message)
			assert.Equal(t, "iris-1", ended.RunID)
			assert.Equal(t, c.want, ended.Result)
			assert.Same(t, ended.Result, result)
			var cause *temporal.ApplicationError
			require.ErrorAs(t, err, &cause, "the cause is Temporal's error")
		})
	}
}

// The SDK's test environment does not tell a parent how a cancelled child ended.
func TestResultOf(t *testing.T) {
	stopped := &spec.RunResult{Verdict: spec.VerdictCancelled, Message: "the run was stopped", ExitCode: 130}
	for name, c := range map[string]struct {
		err  error
		want *spec.RunResult
	}{
		"cancelled": {temporal.NewCanceledError(*stopped), stopped},
		"cancelled early": {
			temporal.NewCanceledError(),
			&spec.RunResult{Verdict: spec.VerdictCancelled, Message: "the run was cancelled before it started", ExitCode: 130},
		},
		"in a cause": {temporal.NewApplicationErrorWithCause("the parent failed", "Error", temporal.NewCanceledError(*stopped)), stopped},
		"timed out by the server": {
			temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil),
			&spec.RunResult{Verdict: spec.VerdictTimedOut, Message: "the run exceeded its workflow timeout", ExitCode: 124},
		},
		"another error": {errors.New("no connection"), nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, runs.ResultOf(c.err)) })
	}
}

// A second run with the ID of an open one is refused.
func TestRunRefusesAnIDInUse(t *testing.T) {
	c := newCaller(t, func(ctx workflow.Context) (*spec.RunResult, error) {
		return &spec.RunResult{Verdict: spec.VerdictSucceeded}, workflow.Sleep(ctx, time.Minute)
	})
	var second error
	c.execute(func(ctx workflow.Context) error {
		first := runs.Start(ctx, two(), runs.Options{ID: "iris-1"})
		if err := first.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			return err
		}
		_, second = runs.Run(ctx, two(), runs.Options{ID: "iris-1"})
		_, err := first.Wait(ctx)
		return err
	})
	require.NoError(t, c.GetWorkflowError())
	var running *runs.RunningError
	require.ErrorAs(t, second, &running)
	assert.Equal(t, "iris-1", running.ID)
}

// A spec that ClusterRun will refuse costs the parent neither time nor memory.
func TestABadSpecHasNoFacts(t *testing.T) {
	c := newCaller(t, func(workflow.Context) (*spec.RunResult, error) { return nil, errors.New("it is bad") })
	huge := 1 << 40
	var err error
	c.execute(func(ctx workflow.Context) error {
		s := two()
		s.Tasks[0].Count = &huge
		_, err = runs.Run(ctx, s, runs.Options{})
		return nil
	})
	require.Error(t, err)
	assert.Nil(t, c.info.Memo)
}

// A workflow that trains, and evaluates only what has been trained well.
func Example() {
	_ = func(ctx workflow.Context, dir string) error {
		train := &spec.RunSpec{Name: "train", Command: []string{"python3", "train.py"}, Dir: dir, Tasks: []spec.TaskGroup{{Type: "worker"}}}
		_, err := runs.Run(ctx, train, runs.Options{})
		var failed *runs.Error
		if errors.As(err, &failed) && failed.Result.Verdict == spec.VerdictTimedOut {
			workflow.GetLogger(ctx).Info("too slow", "limit", failed.Result.Limit)
		}
		if err != nil {
			return err
		}
		evaluate := &spec.RunSpec{Name: "evaluate", Command: []string{"python3", "evaluate.py"}, Dir: dir, Tasks: []spec.TaskGroup{{Type: "worker"}}}
		_, err = runs.Run(ctx, evaluate, runs.Options{})
		return err
	}
}
