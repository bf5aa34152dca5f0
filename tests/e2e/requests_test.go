package e2e

import (
	"context"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"strings"
	"testing"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestOperatorRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)

	t.Run("D-15 a terminated task can be started again", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2,
			`echo up >> $DIR/07-$CLUSTERRUN_TASK_INDEX; until [ -e $DIR/07-go ]; do nap; done`)}})
		f.file("07-0")
		f.file("07-1")
		_, err := f.tryUpdate(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-0"})
		require.ErrorContains(t, err, "worker-0 is running; `clusterrun restart` restarts it")
		f.update(run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-0"}})
		harness.Eventually(t, "worker-0 has ended", func() bool { return f.state(run, "worker-0") == spec.TaskEnded })
		f.update(run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-0"}})
		f.update(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-0"})
		harness.Eventually(t, "worker-0 runs again", func() bool { return f.file("07-0") == "up\nup\n" })
		touch(t, f, "07-go")
		r := f.result(run)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Len(t, task(r, "worker-0").Exits, 2)
	})

	t.Run("tasks outside the spec", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{DependenceOnChief: ptr(false), Tasks: []spec.TaskGroup{
			group("chief", 1, `echo "$TF_CONFIG" > $DIR/08-$CLUSTERRUN_TASK; until [ -e $DIR/08-go ]; do nap; done`),
			group("worker", 2, `echo "$TF_CONFIG" > $DIR/08-$CLUSTERRUN_TASK; until [ -e $DIR/08-go ]; do nap; done`)}})
		f.file("08-worker-1")
		f.update(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-2"})
		f.update(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "evaluator-0", Command: []string{"/bin/sh", "-c", "echo x > $DIR/08-evaluator-0"}})
		assert.Equal(t, 3, strings.Count(after(f.file("08-worker-2"), `"worker"`), "127.0.0.1"), "the new task sees itself")
		assert.Equal(t, "x\n", f.file("08-evaluator-0"))
		touch(t, f, "08-go")
		r := f.result(run)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Equal(t, 4, task(r, "evaluator-0").Rank)
		assert.Equal(t, spec.CauseCompleted, task(r, "worker-2").Exit.Cause)
	})

	t.Run("terminated tasks are restarted with auto_restart", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{AutoRestart: true, MaxRestarts: ptr(0), Tasks: []spec.TaskGroup{group("worker", 2,
			`echo up >> $DIR/21-$CLUSTERRUN_TASK_INDEX; [ $(wc -l < $DIR/21-$CLUSTERRUN_TASK_INDEX) -ge 2 ] || exec sleep 10000`)}})
		f.file("21-0")
		f.file("21-1")
		f.update(run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-1"}})
		harness.Eventually(t, "worker-1 is started again", func() bool { return f.file("21-1") == "up\nup\n" })
		f.update(run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-0"}})
		r := f.result(run)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	})

	t.Run("signal-task", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1,
			`trap 'echo usr1 > $DIR/signalled; exit 0' USR1; echo up > $DIR/signal-up; while :; do nap; done`)}})
		f.file("signal-up")
		f.update(run, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGUSR1"})
		assert.Equal(t, spec.VerdictSucceeded, f.result(run).Verdict)
		assert.Equal(t, "usr1\n", f.file("signalled"))
	})

	t.Run("cancelling the workflow stops the run with a result", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 3, `trap 'exit 7' TERM; echo up > $DIR/cancel-$CLUSTERRUN_TASK_INDEX; while :; do nap; done`)}})
		for _, n := range []string{"cancel-0", "cancel-1", "cancel-2"} {
			f.file(n)
		}
		require.NoError(t, f.client.CancelWorkflow(context.Background(), run.GetID(), run.GetRunID()))
		r := f.result(run)
		assert.Equal(t, spec.VerdictCancelled, r.Verdict)
		assert.Equal(t, 130, r.ExitCode)
		for _, task := range r.Tasks {
			assert.Equal(t, spec.CauseOperator, task.Exit.Cause, task.Name)
			assert.Equal(t, 7, task.Exit.ExitCode, task.Name)
		}
	})

	t.Run("a start that would fail is refused and changes nothing", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, `echo up > $DIR/checked; until [ -e $DIR/checked-go ]; do nap; done`)}})
		f.file("checked")
		code, stdout, stderr := f.CLI(t, "start", run.GetID(), "extra-0", "--", "/no/such/program")
		assert.Equal(t, 2, code)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "/no/such/program on host host-a: command not found (extra-0)")
		code, stdout, stderr = f.CLI(t, "--json", "start", "--dir", "/nonexistent", run.GetID(), "worker-1")
		assert.Equal(t, 2, code)
		assert.Contains(t, stdout, `"exit_code": 2`)
		assert.Contains(t, stderr, "working directory /nonexistent on host host-a: no such file or directory")
		code, _, stderr = f.Temporal(t, "workflow", "update", "execute", "--workflow-id", run.GetID(), "--name", spec.UpdateStartTask.Name,
			"--input", `{"task": "extra-0", "command": ["/no/such/program"]}`)
		assert.NotZero(t, code)
		assert.Contains(t, stderr, "command not found")
		assert.Contains(t, f.Fails(t, 2, "start", run.GetID(), "worker-10"), "the next of type worker is worker-1")
		stdout = f.OK(t, "start", "--new", run.GetID(), "worker-10")
		assert.Equal(t, "started: worker-10\n", stdout)
		touch(t, f, "checked-go")
		r := f.result(run)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Len(t, r.Tasks, 2)
	})

}
