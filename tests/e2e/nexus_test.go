package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// endpoint is the name of the endpoint of the tests.
const endpoint = "clusterrun"

// The workflows of callers.
func childCaller(ctx workflow.Context, s *spec.RunSpec, id string) (*spec.RunResult, error) {
	return runs.Run(ctx, s, runs.Options{ID: id, SearchAttributes: true})
}

func nexusCaller(ctx workflow.Context, in runs.RunInput) (*spec.RunResult, error) {
	return runs.RunNexus(ctx, endpoint, in, workflow.NexusOperationOptions{})
}

func waiter(ctx workflow.Context, id string) (*spec.RunResult, error) {
	return runs.WaitNexus(ctx, endpoint, id, workflow.NexusOperationOptions{})
}

func (f *fixture) createEndpoint() {
	f.t.Helper()
	_, err := f.client.OperatorService().CreateNexusEndpoint(f.t.Context(), &operatorservice.CreateNexusEndpointRequest{
		Spec: &nexuspb.EndpointSpec{Name: endpoint, Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{
			Worker: &nexuspb.EndpointTarget_Worker{Namespace: "default", TaskQueue: spec.TaskQueue},
		}}},
	})
	require.NoError(f.t, err)
}

// Workflows execute runs as children and as Nexus operations, and learn how they end.
func TestRunsInWorkflows(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, harness.StartServer(t, "--headless"), "--slots", "64")
	f.createEndpoint()
	w := worker.New(f.client, "callers", worker.Options{})
	w.RegisterWorkflow(childCaller)
	w.RegisterWorkflow(nexusCaller)
	w.RegisterWorkflow(waiter)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	call := func(id string, caller any, args ...any) client.WorkflowRun {
		t.Helper()
		run := must.Get(f.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "callers"}, caller, args...))(t)
		return run
	}
	key, value, _ := cut(f.mark)
	of := func(script string) *spec.RunSpec {
		return &spec.RunSpec{
			Name: "iris", Dir: f.dir, Env: spec.EnvOf(map[string]string{key: value, "DIR": f.dir}), Stop: spec.Stop{Grace: spec.DurationOf(time.Minute)},
			Tasks: []spec.TaskGroup{group("worker", 1, script)},
		}
	}
	// resultOf returns what the caller's caller can read: the result of a run is in the details
	// of a cause.
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
	// stopped checks that the task of a run could save its work.
	stopped := func(name string) {
		t.Helper()
		assert.Equal(t, "saved\n", f.file("saved-"+name))
	}
	bad := of(`echo 'ValueError: shard 3' >&2; exit 3`)

	// They all run side by side.
	good := call("good", childCaller, of("true"), "child-good")
	goodNexus := call("good-nexus", nexusCaller, runs.RunInput{Spec: of("true")})
	failed := call("failed", childCaller, bad, "child-failed")
	failedNexus := call("failed-nexus", nexusCaller, runs.RunInput{Spec: bad, ID: "nexus-failed"})
	invalid := call("invalid", childCaller, &spec.RunSpec{}, "child-invalid")
	invalidNexus := call("invalid-nexus", nexusCaller, runs.RunInput{Spec: &spec.RunSpec{}})
	cancelled := call("cancelled", childCaller, named("a"), "child-cancelled")
	cancelledNexus := call("cancelled-nexus", nexusCaller, runs.RunInput{Spec: named("b"), ID: "nexus-cancelled"})
	closed := call("closed", childCaller, named("c"), "child-closed")
	missing := call("missing", waiter, "no-such-run")

	for _, run := range []client.WorkflowRun{good, goodNexus} {
		result := must.Get(resultOf(run))(t)
		assert.Equal(t, spec.VerdictSucceeded, result.Verdict)
		assert.Len(t, result.Tasks, 1)
	}
	for _, run := range []client.WorkflowRun{failed, failedNexus} {
		result, err := resultOf(run)
		require.Error(t, err)
		assert.Equal(t, spec.VerdictFailed, result.Verdict, run.GetID())
		assert.Equal(t, 3, result.ExitCode, run.GetID())
		assert.Contains(t, result.FirstFailure.Message, "ValueError: shard 3", run.GetID())
	}
	for _, run := range []client.WorkflowRun{invalid, invalidNexus} {
		result, err := resultOf(run)
		require.Error(t, err)
		assert.Equal(t, spec.ErrInvalidRunSpec, result.ErrorType, run.GetID())
		assert.Equal(t, 2, result.ExitCode, run.GetID())
	}
	_, err := resultOf(missing)
	assert.ErrorContains(t, err, `no run "no-such-run"`)

	// An operation waits for a run of others, open or ended, and its cancellation leaves the run.
	f.file("up-b")
	attached := call("attached", nexusCaller, runs.RunInput{Spec: of("false"), ID: "nexus-cancelled", Attach: true})
	waiting := call("waiting", waiter, "nexus-cancelled")
	leaving := call("leaving", waiter, "nexus-cancelled")
	inUse := call("in-use", nexusCaller, runs.RunInput{Spec: of("true"), ID: "nexus-cancelled"})
	_, err = resultOf(inUse)
	assert.ErrorContains(t, err, "run nexus-cancelled is running already")
	for _, run := range []client.WorkflowRun{attached, waiting, leaving} {
		harness.Eventually(t, run.GetID()+" is attached", func() bool {
			d := must.Get(f.client.DescribeWorkflowExecution(t.Context(), run.GetID(), ""))(t)
			pending := d.GetPendingNexusOperations()
			return len(pending) == 1 && pending[0].GetState() == enumspb.PENDING_NEXUS_OPERATION_STATE_STARTED
		})
	}
	require.NoError(t, f.client.CancelWorkflow(t.Context(), leaving.GetID(), ""))
	_, err = resultOf(leaving)
	assert.True(t, temporal.IsCanceledError(err), "%v", err)

	// A cancellation reaches the tasks, and the caller learns of the end.
	f.file("up-a")
	require.NoError(t, f.client.CancelWorkflow(t.Context(), cancelled.GetID(), ""))
	require.NoError(t, f.client.CancelWorkflow(t.Context(), cancelledNexus.GetID(), ""))
	for _, run := range []client.WorkflowRun{cancelled, cancelledNexus, attached, waiting, call("late", waiter, "nexus-cancelled")} {
		result, err := resultOf(run)
		require.Error(t, err)
		assert.True(t, temporal.IsCanceledError(err), "%s: %v", run.GetID(), err)
		require.NotNil(t, result, run.GetID())
		assert.Equal(t, spec.VerdictCancelled, result.Verdict, run.GetID())
		assert.Len(t, result.Tasks, 1, run.GetID())
	}
	stopped("a")
	stopped("b")

	// A parent that is terminated takes its run along, as if the run were stopped.
	f.file("up-c")
	require.NoError(t, f.client.TerminateWorkflow(t.Context(), closed.GetID(), "", "gone"))
	result, err := resultOf(f.client.GetWorkflow(t.Context(), "child-closed", ""))
	require.Error(t, err)
	assert.Equal(t, spec.VerdictCancelled, result.Verdict)
	stopped("c")
}
