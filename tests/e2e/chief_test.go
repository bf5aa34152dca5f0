package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// chief is a run with the Python program testdata/coordinator/chief.py as its chief. It
// coordinates the run's other tasks and plays scenarios by name.
type chief struct {
	*fixture
	run  client.WorkflowRun
	told int
}

// coordinated starts a run with a chief and the given groups.
func (f *fixture) coordinated(s spec.RunSpec, groups ...spec.TaskGroup) *chief {
	f.t.Helper()
	s.Tasks = append([]spec.TaskGroup{f.python("chief", 1, "coordinator/chief.py")}, groups...)
	return &chief{fixture: f, run: f.start(&s)}
}

// python is a task group that runs a program in testdata.
func (f *fixture) python(typ string, count int, program string) spec.TaskGroup {
	f.t.Helper()
	python := must.Get(exec.LookPath("python3"))(f.t)
	return spec.TaskGroup{
		Type: typ, Count: &count, Command: []string{python, filepath.Join(harness.Root(), "tests/e2e/testdata", program)},
		Env: spec.EnvOf(map[string]string{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": filepath.Join(harness.Root(), "activities/tasks/python")}),
	}
}

// tell makes the chief start a scenario. It returns a function that waits until the scenario
// finishes.
func (c *chief) tell(name string, args ...any) func(t *testing.T) any {
	c.t.Helper()
	n := c.told
	c.told++
	if args == nil {
		args = []any{}
	}
	b := must.Get(json.Marshal([]any{name, args}))(c.t)
	path := func(kind string) string { return filepath.Join(c.dir, fmt.Sprintf("%s-%d", kind, n)) }
	require.NoError(c.t, os.WriteFile(path("telling"), b, 0o644))
	require.NoError(c.t, os.Rename(path("telling"), path("command")))
	return func(t *testing.T) any {
		t.Helper()
		var said struct {
			Value any
			Error string
		}
		harness.Eventually(t, "the chief is done with "+name, func() bool {
			b, err := os.ReadFile(path("outcome"))
			return err == nil && json.Unmarshal(b, &said) == nil
		})
		require.Empty(t, said.Error)
		return said.Value
	}
}

// does runs a scenario in the chief, which must succeed.
func (c *chief) does(t *testing.T, name string, args ...any) any {
	t.Helper()
	return c.tell(name, args...)(t)
}

// ends makes the chief return, so that the run finishes.
func (c *chief) ends() spec.RunResult {
	c.t.Helper()
	c.tell("return")
	return c.result(c.run)
}

// succeeds finishes a run, which must have succeeded.
func (c *chief) succeeds() spec.RunResult {
	c.t.Helper()
	r := c.ends()
	assert.Equal(c.t, spec.VerdictSucceeded, r.Verdict, r.Message)
	return r
}

// process returns a task's process.
func (c *chief) process(task string) int {
	c.t.Helper()
	var found int
	harness.Eventually(c.t, task+" lives", func() bool {
		for _, pid := range harness.Alive(c.mark) {
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if strings.Contains(string(env), "CLUSTERRUN_TASK="+task+"\x00") {
				found = pid
				return true
			}
		}
		return false
	})
	return found
}

// A Python chief coordinates Python workers, as in a user's run. They start one by one, as set in
// the environment. worker-0 does not wait, and the rest wait up to the maximum (CC-31).
func TestPythonChief(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	workers := f.serving("worker", 5)
	workers.Env["TF_COORDINATOR_SCHEDULE_START_DELAY"] = spec.Variable{Value: "2"}
	workers.Env["TF_COORDINATOR_SCHEDULE_START_DELAY_MAX"] = spec.Variable{Value: "4"}
	c := f.coordinated(spec.RunSpec{AutoRestart: true}, workers)
	t.Run("CC-13 a part for each", func(t *testing.T) {
		assert.Equal(t, []any{5.0, 7.0, 9.0, 11.0, 13.0}, c.does(t, "a_shard_of_each_worker"))
	})
	for _, s := range []struct {
		ids, name string
		args      []any
	}{
		{"CC-17", "each_iterator_begins_anew", nil},
		{"CC-19", "a_mapped_dataset", nil},
		{"CC-20", "a_builder_that_shares", nil},
		{"CC-21", "shuffled_differently", nil},
		{"CC-27", "data_for_a_dataset", nil},
		{"CC-28", "two_datasets", nil},
		{"CC-52", "schedule_with_a_dataset", nil},
		{"CC-44", "two_variables", nil},
		{"SEED-44", "statuses", []any{"statuses"}},
		{"CC-63", "an_error_while_a_worker_is_away", []any{"away"}},
		{"CC-61", "between_functions", nil},
		{"", "amid_functions", []any{"amid"}},
		{"CC-72 CC-87", "a_value_outlives_its_worker", []any{"worker-0", "worker-1"}},
		{"CC-64 CC-65", "a_worker_dies_amid_building", []any{"cc64"}},
	} {
		t.Run(strings.TrimSpace(s.ids+" "+s.name), func(t *testing.T) { c.does(t, s.name, s.args...) })
	}
	c.succeeds()
}

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
		c.does(t, "begin_held", "cc90", 5, "worker-0", "worker-1", "worker-2")
		add("worker-3")
		c.does(t, "await_held", "cc90", "worker-3")
		assert.GreaterOrEqual(t, c.does(t, "end_held", "cc90"), 5.0)
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
	t.Run("CC-82 one is away amid many functions", func(t *testing.T) {
		n, seconds := 5000, 0.001
		if testing.Short() {
			n, seconds = 500, 0.01
		}
		done := c.tell("many", "away", 10_000, n, seconds)
		c.squaresCalled(10_000, n/4)
		remove("worker-1")
		c.squaresCalled(10_000, n/2)
		add("worker-1")
		executions(t, n, done(t))
	})
	c.succeeds()
}

// health returns the task states that `clusterrun status` shows, and its tasks in order.
func (c *chief) health() (states map[string]spec.TaskState, order []string) {
	c.t.Helper()
	s := must.JSON[spec.Status](c.t, c.clusterrun("status", "--json", c.run.GetID()))
	states = map[string]spec.TaskState{}
	for _, task := range s.Tasks {
		states[task.Name] = task.State
		order = append(order, task.Name)
	}
	return states, order
}

// awaitHealth waits until all tasks run except these.
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

// serving lists the tasks that serve, according to the closure queue.
func (c *chief) servingTasks(of *clustercoordinator.Coordinator) []string {
	c.t.Helper()
	var names []string
	for _, w := range c.status(of).Workers {
		names = append(names, w.Task)
	}
	return slices.Sorted(slices.Values(names))
}

// CC-93 to CC-96: workers' and servers' health is visible to all.
func (c *chief) checkHealth(t *testing.T) {
	of := c.coordinator(c.run)
	c.awaitServing(of, 2)
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
		c.Server.Kill()
		code, stdout, stderr := c.CLI(t, "status", c.run.GetID())
		assert.Equal(t, 125, code, stdout)
		assert.NotEmpty(t, stderr)
		c.Restart()
		c.awaitHealth(t)
		assert.Equal(t, []string{"worker-0", "worker-1"}, c.servingTasks(of))
		c.does(t, "steps", "again", 4)
	})
}
