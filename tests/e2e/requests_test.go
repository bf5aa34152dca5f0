package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestOperatorRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)

	t.Run("MPR-06 a terminated task does not fail the run", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2,
			`echo up > $DIR/06-$CLUSTERRUN_TASK_INDEX; [ $CLUSTERRUN_TASK_INDEX = 0 ] && exec sleep 10000; until [ -e $DIR/06-go ]; do nap; done`)}})
		f.file("06-0")
		f.file("06-1")
		assert.Equal(t, []string{"worker-0"}, f.update(run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-0"}}).Tasks)
		touch(t, f, "06-go")
		r := f.result(run)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Equal(t, spec.CauseOperator, task(r, "worker-0").Exit.Cause)
	})

	t.Run("MPR-07 SEED-07 D-15 a terminated task can be started again", func(t *testing.T) {
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

	t.Run("MPR-08 SEED-12 tasks outside the spec", func(t *testing.T) {
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

	t.Run("MPR-21 MPR-22 terminated tasks are restarted with auto_restart", func(t *testing.T) {
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

	t.Run("MPR-10 terminate-all does not hide an error", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{OnFailure: spec.OnFailureContinue, Tasks: []spec.TaskGroup{
			group("worker", 1, `echo '{"message": "This is an error."}' > "$CLUSTERRUN_ERROR_FILE"; exit 1`),
			group("ps", 1, `echo up > $DIR/10-ps; exec sleep 10000`)}})
		f.file("10-ps")
		harness.Eventually(t, "worker-0 has ended", func() bool { return f.state(run, "worker-0") == spec.TaskEnded })
		f.update(run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
		r := f.result(run)
		assert.Contains(t, r.Message, "This is an error.")
		assert.Equal(t, spec.CauseOperator, task(r, "ps-0").Exit.Cause)
	})

	t.Run("restart works without auto_restart", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1,
			`echo up >> $DIR/restart; [ $(wc -l < $DIR/restart) -ge 2 ] || exec sleep 10000`)}})
		f.file("restart")
		f.update(run, spec.UpdateRestartTask, spec.TaskRequest{Tasks: []string{"worker-0"}})
		r := f.result(run)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Equal(t, 1, task(r, "worker-0").Restarts)
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

	t.Run("unknown tasks and bad signals are refused", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, `echo up > $DIR/refuse; exec sleep 10000`)}})
		f.file("refuse")
		for _, bad := range []struct {
			update fmt.Stringer
			arg    any
			want   string
		}{
			{spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-9"}}, "worker-9"},
			{spec.UpdateTerminateTask, spec.TaskRequest{}, "task"},
			{spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGNONE"}, "SIGNONE"},
			{spec.UpdateRestartTask, spec.TaskRequest{Tasks: []string{"worker-0"}, Grace: spec.DurationOf(-time.Second)}, "grace"},
			{spec.UpdateStartTask, spec.StartTaskRequest{Task: "nonsense"}, "nonsense"},
		} {
			_, err := f.tryUpdate(run, bad.update, bad.arg)
			require.ErrorContains(t, err, bad.want, bad.update)
		}
		f.update(run, spec.UpdateRequestStop, spec.StopRequest{Reason: "enough"})
		assert.Equal(t, spec.VerdictCancelled, f.result(run).Verdict)
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

	t.Run("what can be done for some is done", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2, `echo said; echo up > $DIR/some-$CLUSTERRUN_TASK_INDEX; exec sleep 10000`)}})
		f.file("some-0")
		f.file("some-1")
		for _, args := range [][]string{
			{"signal", run.GetID(), "worker-9", "worker-0", "SIGCONT"},
			{"stacks", run.GetID(), "worker-9", "worker-0"},
			{"stop", run.GetID(), "worker-9", "worker-0"},
		} {
			code, stdout, stderr := f.CLI(t, args...)
			assert.Equal(t, 125, code, args)
			assert.Regexp(t, `worker-0|\(rank 0\)`, stdout, args)
			assert.Contains(t, stderr, "worker-9 is not a task of this run; its tasks are worker-0, worker-1", args)
		}
		code, stdout, stderr := f.CLI(t, "logs", run.GetID(), "worker-9", "worker-0")
		assert.Equal(t, 2, code)
		assert.Regexp(t, `^\[worker-0\]: +said\n$`, stdout)
		assert.Contains(t, stderr, "has no task, type, rank or host worker-9")
		code, stdout, stderr = f.CLI(t, "stop", "--wait", "nosuch", run.GetID(), "none")
		assert.Equal(t, 125, code)
		assert.Equal(t, "stopped: "+run.GetID()+"\n", stdout)
		assert.Contains(t, stderr, "no run \"nosuch\" on this server")
		assert.Contains(t, stderr, "no run \"none\" on this server")
		assert.Equal(t, spec.VerdictCancelled, f.result(run).Verdict)
	})

	t.Run("stop --kill says what it did to a run without a place, and status what that waits for", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{PlacementTimeout: spec.DurationOf(time.Hour), Tasks: []spec.TaskGroup{{Type: "ps", Addresses: []string{"nowhere:2222"}, Command: []string{"true"}}}})
		harness.Eventually(t, "it says what it waits for", func() bool {
			_, out, _ := f.CLI(t, "status", run.GetID())
			return strings.Contains(out, "\nwaiting for 1 slot: no host worker has joined as \"nowhere\"; the queue has host-a; start one there with `clusterrun worker`, or correct the address (position 1 in queue clusterrun)\n")
		})
		stdout, stderr := f.Succeeds(t, "stop", "--kill", run.GetID())
		assert.Equal(t, "stopping: "+run.GetID()+": its tasks were still pending; the run is cancelled\n", stdout)
		assert.Empty(t, stderr)
		assert.Equal(t, spec.VerdictCancelled, f.result(run).Verdict)
	})
	t.Run("a terminated run has a verdict, and a list that is cut says so", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, `echo up > $DIR/force; exec sleep 10000`)}})
		f.file("force")
		stdout, stderr := f.Succeeds(t, "stop", "--abandon", "--reason", "enough", run.GetID())
		assert.Equal(t, "ended: "+run.GetID()+", without a result\n", stdout)
		_, stdout, _ = f.CLI(t, "status", run.GetID())
		assert.Regexp(t, `^run \S+: terminated, (?s:.*)\nterminated by \S+ \(enough\) and left no result\n`, stdout)
		var runs []starter.Summary
		harness.Eventually(t, "it is listed as ended", func() bool {
			_, stdout, stderr = f.CLI(t, "--json", "list", "--limit", "1")
			require.NoError(t, json.Unmarshal([]byte(stdout), &runs), "%s%s", stdout, stderr)
			return len(runs) == 1 && runs[0].RunID == run.GetID() && !runs[0].Open
		})
		assert.Equal(t, spec.VerdictFailed, runs[0].Verdict)
		assert.Equal(t, 125, runs[0].ExitCode)
		assert.Contains(t, stderr, "older runs are not shown; a higher --limit shows them")
		f.alive(0)
	})
}
