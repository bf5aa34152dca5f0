package activities

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A closure for a task that the run does not have is refused. Tasks of the spec are known
// here, and the run is asked for others, once for one that is there.
func TestACoordinatorAsksForTasksOfTheRun(t *testing.T) {
	r := newRun(t)
	h := stopHost(t, t.TempDir(), r)
	_, err := h.plans.update(servedRun, func(p *plan) (*plan, error) {
		p.Spec = (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2), Command: []string{"x"}}}}).WithDefaults()
		return p, nil
	})
	require.NoError(t, err)
	r.tasks = []string{"worker-0", "worker-1", "extra-3"}
	check := func(tasks ...string) error {
		var closures []closure.Closure
		for _, name := range tasks {
			closures = append(closures, closure.Closure{Function: "f", Options: &closure.Options{Task: name}})
		}
		return h.coordinating.checkTasks(t.Context(), by("worker-0"), closures)
	}
	require.NoError(t, h.coordinating.checkTasks(t.Context(), by("worker-0"), []closure.Closure{{Function: "f"}}))
	require.NoError(t, check("worker-0", "worker-1", ""))
	assert.Zero(t, r.tasksAsked)
	require.NoError(t, check("extra-3", "extra-3"))
	require.NoError(t, check("extra-3"))
	assert.Equal(t, 1, r.tasksAsked)

	_, err = h.coordinating.Schedule(t.Context(), by("worker-0"), closure.ScheduleRequest{Closures: []closure.Closure{
		{Function: "f"}, {Function: "f", Options: &closure.Options{Task: "chief-9"}},
	}})
	var refused *taskapi.QueueRefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, `closures[1].options.task: the run has no task "chief-9"; it has worker-0, worker-1, extra-3`, refused.Message)

	r.tasksFail = errors.New("away")
	require.NoError(t, check("chief-8"), "it may be there")
	asked := r.tasksAsked
	require.NoError(t, check("chief-8"))
	assert.Equal(t, asked, r.tasksAsked)
	h.coordinating.end(servedKeyOf(&plan{Run: servedRun}))
	assert.Empty(t, h.coordinating.added)
}
