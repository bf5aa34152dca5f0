package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Requests reach the tasks' processes.
func TestOperatorRequests(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2,
		`trap 'echo usr1 > $DIR/signalled' USR1; trap 'exit 7' TERM; echo "$TF_CONFIG" >> $DIR/up-$CLUSTERRUN_TASK; while :; do nap; done`)}})
	f.file("up-worker-0")
	f.file("up-worker-1")
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

	require.NoError(t, f.client.CancelWorkflow(context.Background(), run.GetID(), run.GetRunID()))
	r := f.result(run)
	assert.Equal(t, spec.VerdictCancelled, r.Verdict)
	assert.Equal(t, 130, r.ExitCode)
	assert.Len(t, task(r, "worker-0").Exits, 2)
	for _, task := range r.Tasks {
		assert.Equal(t, spec.CauseOperator, task.Exit.Cause, task.Name)
		assert.Equal(t, 7, task.Exit.ExitCode, task.Name)
	}
}
