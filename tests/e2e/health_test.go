package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// health returns the states of the tasks that `clusterrun status` shows, and the tasks in its
// order.
func (c *chief) health() (states map[string]spec.TaskState, order []string) {
	c.t.Helper()
	var s spec.Status
	require.NoError(c.t, json.Unmarshal([]byte(c.clusterrun("status", "--json", c.run.GetID())), &s))
	states = map[string]spec.TaskState{}
	for _, task := range s.Tasks {
		states[task.Name] = task.State
		order = append(order, task.Name)
	}
	return states, order
}

// awaitHealth waits until all tasks run but those.
func (c *chief) awaitHealth(t *testing.T, ended ...string) {
	t.Helper()
	want := map[string]spec.TaskState{}
	for _, task := range []string{"chief-0", "worker-0", "worker-1", "ps-0", "ps-1"} {
		want[task] = spec.TaskRunning
	}
	for _, task := range ended {
		want[task] = spec.TaskEnded
	}
	var got map[string]spec.TaskState
	harness.Eventually(t, "the tasks are as they should be", func() bool {
		var order []string
		got, order = c.health()
		assert.Equal(t, []string{"chief-0", "worker-0", "worker-1", "ps-0", "ps-1"}, order)
		return maps.Equal(want, got)
	})
}

// serving are the tasks that the queue of closures knows to serve.
func (c *chief) servingTasks(of *clustercoordinator.Coordinator) []string {
	c.t.Helper()
	var names []string
	for _, w := range c.status(of).Workers {
		if w.Serving {
			names = append(names, w.Task)
		}
	}
	return slices.Sorted(slices.Values(names))
}

// CC-93 to CC-96: the health of the workers and the servers of a run is visible to all.
func TestTheHealthOfTasks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.withServers(spec.RunSpec{OnFailure: spec.OnFailureContinue}, 2, 2)
	of := f.coordinator(c.run)
	f.awaitServing(of, 2)

	t.Run("CC-93 all are healthy", func(t *testing.T) {
		c.awaitHealth(t)
		assert.Equal(t, []string{"worker-0", "worker-1"}, c.servingTasks(of))
	})
	t.Run("CC-94 a worker is not", func(t *testing.T) {
		require.NoError(t, syscall.Kill(c.process("worker-0"), syscall.SIGKILL))
		c.awaitHealth(t, "worker-0")
		harness.Eventually(t, "only worker-1 serves", func() bool { return slices.Equal(c.servingTasks(of), []string{"worker-1"}) })
		assert.Contains(t, c.clusterrun("status", c.run.GetID()), "SIGKILL")
		c.startAgain("worker-0")
		c.awaitHealth(t)
		harness.Eventually(t, "both serve", func() bool { return len(c.servingTasks(of)) == 2 })
	})
	t.Run("CC-95 a server is not", func(t *testing.T) {
		require.NoError(t, syscall.Kill(c.process("ps-1"), syscall.SIGKILL))
		c.awaitHealth(t, "ps-1")
		assert.Equal(t, []string{"worker-0", "worker-1"}, c.servingTasks(of), "workers do not mind")
		c.startAgain("ps-1")
		c.awaitHealth(t)
		c.does(t, "steps", "all", 4)
	})
	t.Run("CC-96 nobody knows while the server is away", func(t *testing.T) {
		f.Server.Kill()
		code, stdout, stderr := f.CLI(t, "status", c.run.GetID())
		assert.Equal(t, 125, code, stdout)
		assert.NotEmpty(t, stderr)
		f.Restart()
		c.awaitHealth(t)
		assert.Equal(t, []string{"worker-0", "worker-1"}, c.servingTasks(of))
		c.does(t, "steps", "again", 4)
	})
	c.succeeds()
}
