package e2e

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// If the Temporal side is stopped while a task waits at a barrier that is not local, the task's
// client moves to the next side, as after a kill, and the task sees no error.
func TestTheTemporalSideEndsAtABarrier(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Env: spec.EnvOf(map[string]string{"CR": harness.Clusterrun(t)}), Tasks: []spec.TaskGroup{
		group("worker", 2, `if [ $RANK = 1 ]; then until [ -e $DIR/go ]; do nap; done; fi; "$CR" task barrier x`),
	}})
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		harness.Eventually(t, "one waits", func() bool {
			code, stdout, _ := f.CLI(t, "status", "--barriers", run.GetID())
			return code == 0 && stdout != ""
		})
		side := f.worker.Side()
		require.NoError(t, syscall.Kill(side, signal))
		harness.Eventually(t, "there is another side", func() bool { s := f.worker.Side(); return s != side && s != 0 })
	}
	touch(t, f, "go")
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	for _, task := range r.Tasks {
		assert.Zero(t, task.Restarts, task.Name)
	}
}
