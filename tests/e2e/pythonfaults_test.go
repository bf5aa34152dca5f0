package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// squaresCalled waits until n squares were called, each counted once.
func (c *chief) squaresCalled(from, n int) {
	c.t.Helper()
	s := &squares{f: c.fixture, from: from, values: make([]*clustercoordinator.RemoteValue, 2*n)}
	s.awaitCalled(n)
}

// executions checks a chief's report about many closures.
func executions(t *testing.T, closures int, said any) int {
	t.Helper()
	t.Logf("%d closures, %v executions", closures, said)
	assert.GreaterOrEqual(t, said, float64(closures))
	return int(said.(float64))
}

const amidst, slowly = 400, 0.01

// The chief or a worker dies amid closures that a Python chief has
// scheduled: each is called at least once, and every value is fetched.
func TestPythonChiefFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.coordinated(spec.RunSpec{AutoRestart: true}, f.serving("worker", 3))
	t.Run("the chief", func(t *testing.T) {
		done := c.tell("many", "chief", 10_000, amidst, slowly)
		for round := range 2 {
			c.squaresCalled(10_000, (round+1)*amidst/4)
			chief := c.process("chief-0")
			require.NoError(t, syscall.Kill(chief, syscall.SIGKILL))
			harness.Eventually(t, "there is another chief", func() bool { return c.process("chief-0") != chief })
		}
		assert.Equal(t, amidst, executions(t, amidst, done(t)), "what another chief has scheduled is not called again")
	})
	t.Run("a worker", func(t *testing.T) {
		done := c.tell("many", "worker", 20_000, amidst, slowly)
		for round := range 3 {
			c.squaresCalled(20_000, (round+1)*amidst/5)
			require.NoError(t, syscall.Kill(c.process("worker-0"), syscall.SIGKILL))
		}
		executions(t, amidst, done(t))
	})
	t.Run("CC-84 nothing", func(t *testing.T) {
		assert.Equal(t, amidst, executions(t, amidst, c.does(t, "many", "nothing", 30_000, amidst, 0)))
	})
	f.checkQueue(f.coordinator(c.run), 3*amidst)
	c.succeeds()
}

// The Temporal side of the host worker is killed amid all this.
func TestPythonChiefWithoutASide(t *testing.T) {
	takesLong(t)
	t.Parallel()
	f := newFixture(t)
	c := f.coordinated(spec.RunSpec{AutoRestart: true}, f.serving("worker", 3))
	done := c.tell("many", "side", 10_000, amidst, slowly)
	c.squaresCalled(10_000, amidst/4)
	side := f.worker.Side()
	require.NoError(t, syscall.Kill(side, syscall.SIGKILL))
	harness.Eventually(t, "there is another side", func() bool { s := f.worker.Side(); return s != side && s != 0 })
	executions(t, amidst, done(t))
	f.checkQueue(f.coordinator(c.run), amidst)
	// It would end by itself, too, once the server has missed the heartbeats of the old side.
	require.NoError(t, f.client.TerminateWorkflow(t.Context(), c.run.GetID(), "", "test"))
	f.alive(0)
}

// CC-82: amid 5,000 closures a worker is terminated in the middle, and started again later.
func TestPythonChiefWhoseWorkerIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.coordinated(spec.RunSpec{}, f.serving("worker", 2))
	n, seconds := 5000, 0.001
	if testing.Short() {
		n, seconds = 500, 0.01
	}
	done := c.tell("many", "away", 10_000, n, seconds)
	c.squaresCalled(10_000, n/4)
	f.update(c.run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-0"}})
	c.squaresCalled(10_000, n/2)
	f.update(c.run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-0"})
	executions(t, n, done(t))
	f.checkQueue(f.coordinator(c.run), n)
	r := c.succeeds()
	out, err := os.ReadFile(filepath.Join(task(r, "chief-0").Exit.LogDir, "stdout.log"))
	require.NoError(t, err)
	assert.Contains(t, string(out), fmt.Sprintf("success: %d closures", n))
}
