package taskservices

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// A closure for a task that the run does not have is refused. Tasks of the spec are known
// here, and the run is asked about other tasks, once for each that exists.
func TestACoordinatorAsksForTasksOfTheRun(t *testing.T) {
	r := newRun(t)
	h := newServices(t, Config{Runs: r})
	r.tasks = []string{"worker-0", "worker-1", "extra-3"}
	run, err := h.runOf(by("worker-0"))
	require.NoError(t, err)
	tasks := h.coordinators.tasksOf(&run)
	check := func(names ...string) error {
		var closures []closure.Closure
		for _, name := range names {
			closures = append(closures, closure.Closure{Function: "f", Options: &closure.Options{Task: name}})
		}
		return tasks.Check(t.Context(), closures...)
	}
	require.NoError(t, tasks.Check(t.Context(), closure.Closure{Function: "f"}))
	require.NoError(t, check("worker-0", "worker-1", ""))
	assert.Zero(t, r.tasksAsked)
	require.NoError(t, check("extra-3", "extra-3"))
	require.NoError(t, check("extra-3"))
	assert.Equal(t, 1, r.tasksAsked)

	var refused *closure.RefusedError
	require.ErrorAs(t, check("worker-0", "chief-9"), &refused)
	assert.Equal(t, `closures[1].options.task: the run has no task "chief-9"; it has worker-0, worker-1, extra-3`, refused.Error())

	r.tasksFail = errors.New("away")
	require.NoError(t, check("chief-8"), "it may be there")
	asked := r.tasksAsked
	require.NoError(t, check("chief-8"))
	assert.Equal(t, asked, r.tasksAsked)
}
