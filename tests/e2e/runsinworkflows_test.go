package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// childCaller is a workflow that executes a run.
func childCaller(ctx workflow.Context, s *spec.RunSpec, id string) (*spec.RunResult, error) {
	return runs.Run(ctx, s, runs.Options{ID: id})
}

// Workflows execute runs as children, and receive their outcome.
func TestRunsInWorkflows(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
	w := worker.New(f.client, "callers", worker.Options{})
	w.RegisterWorkflow(childCaller)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	call := func(id string, s *spec.RunSpec) client.WorkflowRun {
		t.Helper()
		return must.Get(f.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "callers"}, childCaller, s, "child-"+id))(t)
	}
	key, value, _ := cut(f.mark)
	of := func(script string) *spec.RunSpec {
		return &spec.RunSpec{
			Name: "iris", Dir: f.dir, Env: spec.EnvOf(map[string]string{key: value, "DIR": f.dir}), Stop: spec.Stop{Grace: spec.DurationOf(time.Minute)},
			Tasks: []spec.TaskGroup{group("worker", 1, script)},
		}
	}
	// resultOf returns what the caller's caller can read, because the run's result is in a cause's
	// details.
	resultOf := func(run client.WorkflowRun) (*spec.RunResult, error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var result spec.RunResult
		err := run.Get(ctx, &result)
		require.NoError(t, ctx.Err(), "%s does not end", run.GetID())
		if err != nil {
			return runs.ResultOf(err), err
		}
		return &result, nil
	}
	const slow = `trap 'echo saved > $DIR/saved-$NAME; exit 0' TERM; echo up > $DIR/up-$NAME; while :; do nap; done`
	named := func(name string) *spec.RunSpec {
		s := of(slow)
		s.Env["NAME"] = spec.Variable{Value: name}
		return s
	}
	// stopped checks that the run's task could save its work.
	stopped := func(name string) {
		t.Helper()
		assert.Equal(t, "saved\n", f.file("saved-"+name))
	}

	// They all run concurrently.
	good := call("good", of("true"))
	failed := call("failed", of(`echo 'ValueError: shard 3' >&2; exit 3`))
	invalid := call("invalid", &spec.RunSpec{})
	cancelled := call("cancelled", named("a"))
	closed := call("closed", named("b"))

	result := must.Get(resultOf(good))(t)
	assert.Equal(t, spec.VerdictSucceeded, result.Verdict)
	assert.Len(t, result.Tasks, 1)
	result, err := resultOf(failed)
	require.Error(t, err)
	assert.Equal(t, spec.VerdictFailed, result.Verdict)
	assert.Equal(t, 3, result.ExitCode)
	assert.Contains(t, result.FirstFailure.Message, "ValueError: shard 3")
	result, err = resultOf(invalid)
	require.Error(t, err)
	assert.Equal(t, spec.ErrInvalidRunSpec, result.ErrorType)
	assert.Equal(t, 2, result.ExitCode)

	// A cancellation reaches the tasks, and the caller is notified of the end.
	f.file("up-a")
	require.NoError(t, f.client.CancelWorkflow(t.Context(), cancelled.GetID(), ""))
	result, err = resultOf(cancelled)
	require.Error(t, err)
	assert.True(t, temporal.IsCanceledError(err), "%v", err)
	require.NotNil(t, result)
	assert.Equal(t, spec.VerdictCancelled, result.Verdict)
	assert.Len(t, result.Tasks, 1)
	stopped("a")

	// Terminating a parent also stops its run.
	f.file("up-b")
	require.NoError(t, f.client.TerminateWorkflow(t.Context(), closed.GetID(), "", "gone"))
	result, err = resultOf(f.client.GetWorkflow(t.Context(), "child-closed", ""))
	require.Error(t, err)
	assert.Equal(t, spec.VerdictCancelled, result.Verdict)
	stopped("b")
}
