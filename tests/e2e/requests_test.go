package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Requests reach the tasks' processes.
// TE-09, SEED-81: waiting with a timeout returns no result when it expires, and a result later.
// TE-11, TE-18, SEED-83: closing stops all tasks, even if they ignore the signal, within one grace
// for all; a type may set its own signal and grace.
func TestOperatorRequests(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
	const up = `echo "$TF_CONFIG" >> $DIR/up-$CLUSTERRUN_TASK; `
	run := f.start(&spec.RunSpec{
		Stop: spec.Stop{Grace: spec.DurationOf(time.Second)},
		Tasks: []spec.TaskGroup{
			group("worker", 2, `trap 'echo usr1 > $DIR/signalled' USR1; trap 'exit 7' TERM; `+up+`while :; do nap; done`),
			group("evaluator", 2, `trap '' TERM; `+up+`sleep 10000 & wait; wait`),
			{Type: "ps", Command: harness.Bash(`trap 'exit 7' INT; ` + up + `while :; do nap; done`), Stop: spec.Stop{Signal: "SIGINT", Grace: spec.DurationOf(time.Minute)}},
		},
	})
	for _, task := range []string{"worker-0", "worker-1", "evaluator-0", "evaluator-1", "ps-0"} {
		f.file("up-" + task)
	}
	f.update(run, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGUSR1"})
	assert.Equal(t, "usr1\n", f.file("signalled"))

	_, err := f.tryUpdate(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-0"})
	require.ErrorContains(t, err, "worker-0 is running; `clusterrun restart` restarts it")
	f.update(run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-0"}})
	harness.Eventually(t, "worker-0 has ended", func() bool { return f.state(run, "worker-0") == spec.TaskEnded })
	f.update(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-0"})
	harness.Eventually(t, "worker-0 runs again", func() bool { return strings.Count(f.file("up-worker-0"), "\n") == 2 })

	assert.Contains(t, f.Fails(t, 2, "start", run.GetID(), "worker-10"), "the next task of type worker would be worker-2")
	assert.Contains(t, f.Fails(t, 2, "start", run.GetID(), "extra-0", "--", "/no/such/program"), "/no/such/program on host host-a: command not found (extra-0)")
	assert.Equal(t, "started: worker-2\n", f.OK(t, "start", run.GetID(), "worker-2"))
	assert.Equal(t, 3, strings.Count(after(f.file("up-worker-2"), `"worker"`), "127.0.0.1"), "the new task sees itself")

	handle := starter.Get(f.client, run.GetID(), run.GetRunID())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	early, err := handle.Wait(ctx)
	assert.Nil(t, early)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, f.client.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
	r, err := handle.Wait(t.Context())
	var ended *starter.Error
	require.ErrorAs(t, err, &ended)
	assert.Equal(t, spec.VerdictCancelled, r.Verdict)
	assert.Equal(t, 130, r.ExitCode)
	assert.Len(t, task(*r, "worker-0").Exits, 2)
	for _, task := range r.Tasks {
		assert.Equal(t, spec.CauseOperator, task.Exit.Cause, task.Name)
		want := 7
		if task.Type == "evaluator" {
			want = -9
		}
		assert.Equal(t, want, task.Exit.ExitCode, task.Name)
	}
	assert.Less(t, task(*r, "evaluator-0").Exit.Ended.Sub(task(*r, "ps-0").Exit.Ended), time.Minute, "not the other type's grace")
	assert.Empty(t, harness.Alive(f.mark))
}
