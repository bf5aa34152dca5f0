package e2e

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// squaresCalled waits until so many squares were called, each counted once.
func (c *chief) squaresCalled(from, n int) {
	c.t.Helper()
	s := &squares{f: c.fixture, from: from, values: make([]*clustercoordinator.RemoteValue, 2*n)}
	s.awaitCalled(n)
}

// Whatever dies amid thousands of closures that a Python chief has scheduled: each is
// called at least once, and it fetches every value.
func TestPythonChiefFaults(t *testing.T) {
	f := newFixture(t)
	c := f.coordinated(spec.RunSpec{AutoRestart: true}, f.serving("worker", 3))
	const n, slow = 2000, 0.002
	executions := func(t *testing.T, v any) int {
		t.Helper()
		t.Logf("%d closures, %v executions", n, v)
		assert.GreaterOrEqual(t, v, float64(n))
		return int(v.(float64))
	}

	t.Run("the Temporal side", func(t *testing.T) {
		done := c.tell("many", "side", 10_000, n, slow)
		for round := range 2 {
			c.squaresCalled(10_000, (round+1)*n/4)
			side := f.worker.Side()
			require.NoError(t, syscall.Kill(side, syscall.SIGKILL))
			harness.Eventually(t, "there is another side", func() bool { s := f.worker.Side(); return s != side && s != 0 })
		}
		executions(t, done(t))
	})
	t.Run("the chief", func(t *testing.T) {
		done := c.tell("many", "chief", 20_000, n, slow)
		for round := range 2 {
			c.squaresCalled(20_000, (round+1)*n/4)
			chief := c.process("chief-0")
			require.NoError(t, syscall.Kill(chief, syscall.SIGKILL))
			harness.Eventually(t, "there is another chief", func() bool { return c.process("chief-0") != chief })
		}
		assert.Equal(t, n, executions(t, done(t)), "what another chief has scheduled is not called again")
	})
	t.Run("CC-82 a worker", func(t *testing.T) {
		done := c.tell("many", "worker", 30_000, n, slow)
		for round := range 3 {
			c.squaresCalled(30_000, (round+1)*n/5)
			require.NoError(t, syscall.Kill(c.process("worker-0"), syscall.SIGKILL))
		}
		executions(t, done(t))
	})
	t.Run("CC-84 nothing", func(t *testing.T) {
		assert.Equal(t, n, executions(t, c.does(t, "many", "nothing", 40_000, n, 0)))
	})
	f.checkQueue(f.coordinator(c.run), 4*n)
	c.succeeds()
}
