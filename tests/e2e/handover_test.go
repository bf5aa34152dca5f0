package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// executionsOf returns a run's executions, oldest first. The last did not continue as new.
func executionsOf(t *testing.T, f *fixture, id, first string) []string {
	t.Helper()
	all := []string{first}
	for {
		d := must.Get(f.client.DescribeWorkflowExecution(t.Context(), id, all[len(all)-1]))(t)
		if d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
			return all
		}
		events := f.client.GetWorkflowHistory(t.Context(), id, all[len(all)-1], false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		require.True(t, events.HasNext())
		e := must.Get(events.Next())(t)
		all = append(all, e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId())
	}
}

// A run with endless tasks gets so many requests that it continues in further workflow
// executions. Its processes keep running, without a visible effect.
func TestARunGoesOnInAnotherExecutionWithItsTasks(t *testing.T) {
	t.Parallel()
	s := harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=100")
	f := prepare(t, s, s.StartWorker(t))
	begin := `echo $$ >> $DIR/$NAME-$CLUSTERRUN_TASK; `
	start := func(name string) *starter.Run {
		run := f.start(&spec.RunSpec{
			Env:   spec.EnvOf(map[string]string{"CR": harness.Clusterrun(t), "NAME": name}),
			Tasks: []spec.TaskGroup{group("worker", 3, begin+`if [ $RANK != 0 ]; then until [ -e $DIR/go ]; do nap; done; fi; exec "$CR" task barrier x`)},
		})
		return starter.Get(f.client, run.GetID(), run.GetRunID())
	}
	beside, busy := start("beside"), start("busy")
	serving := f.serve(1)
	served := starter.Get(f.client, serving.GetID(), serving.GetRunID())
	held := schedule(t, f.coordinator(serving), "hold", "release")
	f.called("hold release", 1)
	f.file("beside-worker-0")
	pids := map[string]string{}
	for _, task := range []string{"worker-0", "worker-1", "worker-2"} {
		pids[task] = f.file("busy-" + task)
	}
	before := must.Get(busy.Status(t.Context()))(t)
	_, err := starter.Ask(t.Context(), busy, spec.UpdateStartTask, spec.StartTaskRequest{Task: "added-0", Command: harness.Bash(begin + "until [ -e $DIR/go ]; do nap; done")})
	require.NoError(t, err)
	pids["added-0"] = f.file("busy-added-0")

	var operators sync.WaitGroup
	for range 4 {
		operators.Go(func() {
			for range 25 {
				answer, err := starter.Ask(t.Context(), busy, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0", "worker-1"}, Signal: "SIGCONT"})
				if assert.NoError(t, err) {
					assert.Equal(t, []string{"worker-0", "worker-1"}, answer.Tasks)
				}
			}
		})
	}
	operators.Go(func() {
		for range 50 {
			_, err := starter.Ask(t.Context(), served, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"})
			assert.NoError(t, err)
		}
	})
	operators.Go(func() {
		for range 2 {
			_, err := starter.Ask(t.Context(), beside, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"})
			assert.NoError(t, err)
		}
	})
	operators.Wait()

	all := executionsOf(t, f, busy.ID, busy.ExecutionID)
	require.GreaterOrEqual(t, len(all), 3, "it went on in another execution twice")
	require.Len(t, executionsOf(t, f, beside.ID, beside.ExecutionID), 1)
	require.GreaterOrEqual(t, len(executionsOf(t, f, served.ID, served.ExecutionID)), 3)
	touch(t, f, "release")
	assert.NotEmpty(t, fetched[string](t, held))
	assert.Equal(t, 1, f.calls()["hold release"])
	require.NoError(t, served.Cancel(t.Context()))
	assert.Equal(t, spec.VerdictCancelled, f.result(serving).Verdict)
	status := must.Get(starter.Get(f.client, busy.ID, busy.ExecutionID).Status(t.Context()))(t)
	require.True(t, status.Open, "%+v", status.Result)
	assert.Equal(t, before.Started, status.Started)
	for _, task := range status.Tasks {
		assert.Equal(t, spec.TaskRunning, task.State, task.Name)
		assert.Equal(t, before.Tasks[0].Host, task.Host)
	}
	list := must.Get(starter.List(t.Context(), f.client, starter.ListOptions{}))(t)
	require.Len(t, list, 3)

	touch(t, f, "go")
	r := must.Get(busy.Wait(context.Background()))(t)
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	for _, task := range r.Tasks {
		assert.Zero(t, task.Restarts, task.Name)
		if pids[task.Name] != "" {
			assert.Equal(t, pids[task.Name], f.file("busy-"+task.Name), "there was one process of %s", task.Name)
			assert.Equal(t, pids[task.Name], fmt.Sprintln(task.Exit.PID))
		}
	}
}
