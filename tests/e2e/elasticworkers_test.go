package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Workers come and go while a chief coordinates.
func TestElasticWorkers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.coordinated(spec.RunSpec{}, f.serving("worker", 2))
	add := func(task string) {
		t.Helper()
		c.update(c.run, spec.UpdateStartTask, spec.StartTaskRequest{Task: task, New: task == "worker-7"})
	}
	remove := func(task string) {
		t.Helper()
		c.update(c.run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{task}})
		c.awaitState(task, spec.TaskEnded)
	}
	t.Run("CC-89 one is added between functions", func(t *testing.T) {
		assert.EqualValues(t, 2, c.does(t, "count", "cc89", 2))
		add("worker-2")
		c.does(t, "serves", "worker-2")
		assert.EqualValues(t, 4, c.does(t, "count", "cc89", 2))
	})
	t.Run("CC-90 one is added amid functions", func(t *testing.T) {
		held := c.does(t, "begin_held", "cc90", 5, "worker-0", "worker-1", "worker-2")
		add("worker-3")
		c.does(t, "await_held", "cc90", "worker-3")
		assert.GreaterOrEqual(t, c.does(t, "end_held", "cc90", held), 5.0)
	})
	t.Run("CC-91 one comes back by its name", func(t *testing.T) {
		assert.EqualValues(t, 2, c.does(t, "count", "cc91", 2))
		remove("worker-0")
		add("worker-0")
		assert.EqualValues(t, 4, c.does(t, "count", "cc91", 2))
		c.does(t, "serves", "worker-0")
	})
	t.Run("CC-92 one comes back by another name", func(t *testing.T) {
		assert.EqualValues(t, 2, c.does(t, "count", "cc92", 2))
		remove("worker-0")
		add("worker-7")
		assert.EqualValues(t, 4, c.does(t, "count", "cc92", 2))
		c.does(t, "serves", "worker-7")
	})
	c.succeeds()
}
