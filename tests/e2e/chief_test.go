package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// chief is a run whose chief is the Python program testdata/coordinator/chief.py, which
// coordinates the other tasks of the run and plays scenarios by name.
type chief struct {
	*fixture
	run  client.WorkflowRun
	told int
}

// coordinated starts a run of a chief and of groups.
func (f *fixture) coordinated(s spec.RunSpec, groups ...spec.TaskGroup) *chief {
	f.t.Helper()
	s.Tasks = append([]spec.TaskGroup{f.python("chief", 1, "coordinator/chief.py")}, groups...)
	return &chief{fixture: f, run: f.start(&s)}
}

// python is a group of tasks that are a program of testdata.
func (f *fixture) python(typ string, count int, program string) spec.TaskGroup {
	f.t.Helper()
	python, err := exec.LookPath("python3")
	require.NoError(f.t, err)
	return spec.TaskGroup{
		Type: typ, Count: &count, Command: []string{python, filepath.Join(harness.Root(), "tests/e2e/testdata", program)},
		Env: spec.EnvOf(map[string]string{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": filepath.Join(harness.Root(), "activities/tasks/python")}),
	}
}

// tell makes the chief begin a scenario. It returns a function that waits for its end.
func (c *chief) tell(name string, args ...any) func(t *testing.T) any {
	c.t.Helper()
	n := c.told
	c.told++
	if args == nil {
		args = []any{}
	}
	b, err := json.Marshal([]any{name, args})
	require.NoError(c.t, err)
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

// does runs a scenario in the chief, and requires that it succeeds.
func (c *chief) does(t *testing.T, name string, args ...any) any {
	t.Helper()
	return c.tell(name, args...)(t)
}

// ends makes the chief return, which ends the run.
func (c *chief) ends() spec.RunResult {
	c.t.Helper()
	c.tell("return")
	return c.result(c.run)
}

// succeeds ends a run that has to have succeeded.
func (c *chief) succeeds() spec.RunResult {
	c.t.Helper()
	r := c.ends()
	assert.Equal(c.t, spec.VerdictSucceeded, r.Verdict, r.Message)
	return r
}

// process returns the process of a task.
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
