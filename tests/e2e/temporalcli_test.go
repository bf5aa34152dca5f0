package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Everything that can be requested from a run works from the real temporal CLI.
func TestTemporalCLI(t *testing.T) {
	t.Parallel()
	harness.TemporalCLI(t)
	f := onSharedServer(t)
	input := func(t *testing.T, s any) string {
		path := filepath.Join(t.TempDir(), "run.json")
		b := must.Get(json.Marshal(s))(t)
		require.NoError(t, os.WriteFile(path, b, 0o644))
		return path
	}
	start := func(t *testing.T, id string, s any) (int, string) {
		code, out, err := f.Temporal(t, "workflow", "start", "--type", "ClusterRun", "--task-queue", "clusterrun",
			"--workflow-id", id, "--input-file", input(t, s))
		return code, out + err
	}
	sleeper := func(id string) *spec.RunSpec {
		key, value, _ := cut(f.mark)
		return &spec.RunSpec{
			Dir: f.dir, Env: spec.EnvOf(map[string]string{key: value, "DIR": f.dir}),
			Tasks: []spec.TaskGroup{group("worker", 2, `echo up > $DIR/`+id+`-$CLUSTERRUN_TASK_INDEX; exec sleep 10000`)},
		}
	}

	t.Run("reset", func(t *testing.T) {
		f.t = t
		reset := func(id, to string) {
			t.Helper()
			code, out := start(t, id, sleeper(id))
			require.Zero(t, code, out)
			f.file(id + "-0")
			f.file(id + "-1")
			assert.Contains(t, f.OK(t, "list", "--json"), `"tasks": "worker=2"`, "a list shows the run although its starter set no memo")
			harness.Eventually(t, "it has the search attributes of runs", func() bool {
				return strings.Contains(f.OK(t, "list", "--on-host", "host-a"), id)
			})
			code, out, errOut := f.Temporal(t, "workflow", "reset", "--workflow-id", id, "--type", to, "--reason", "try")
			require.Zero(t, code, out+errOut)
		}
		// The history before the reset is kept, and its processes are taken over.
		reset("reset-last", "LastWorkflowTask")
		before := harness.Alive(f.mark)
		assert.Len(t, before, 2)
		harness.Eventually(t, "the new execution is asked", func() bool {
			code, out, errOut := f.Temporal(t, "workflow", "update", "execute", "--workflow-id", "reset-last",
				"--name", "terminate-task", "--input", `{"tasks": ["worker-1"]}`)
			return code == 0 && strings.Contains(out+errOut, "worker-1")
		})
		harness.Eventually(t, "one process is left", func() bool { return len(harness.Alive(f.mark)) == 1 })
		assert.Subset(t, before, harness.Alive(f.mark))
		code, _, _ := f.Temporal(t, "workflow", "terminate", "--workflow-id", "reset-last")
		require.Zero(t, code)
		harness.Eventually(t, "no process is left", func() bool { return len(harness.Alive(f.mark)) == 0 })

		// A reset that would start the tasks twice is refused.
		reset("reset-first", "FirstWorkflowTask")
		code, out, errOut := f.Temporal(t, "workflow", "result", "--workflow-id", "reset-first")
		assert.NotZero(t, code)
		assert.Contains(t, out+errOut, "its workflow was reset to a point before its tasks were placed")
		harness.Eventually(t, "no process is left", func() bool { return len(harness.Alive(f.mark)) == 0 })
	})

	t.Run("start, query, update, cancel", func(t *testing.T) {
		f.t = t
		code, out := start(t, "cli-1", sleeper("cli-1"))
		require.Zero(t, code, out)
		f.file("cli-1-0")
		f.file("cli-1-1")
		code, out, _ = f.Temporal(t, "workflow", "query", "--workflow-id", "cli-1", "--type", "status")
		require.Zero(t, code, out)
		assert.Contains(t, out, "worker-1")
		assert.Contains(t, out, "running")
		code, out, errOut := f.Temporal(t, "workflow", "update", "execute", "--workflow-id", "cli-1",
			"--name", "terminate-task", "--input", `{"tasks": ["worker-1"]}`)
		require.Zero(t, code, out+errOut)
		assert.Contains(t, out, "worker-1")
		harness.Eventually(t, "one process is left", func() bool { return len(harness.Alive(f.mark)) == 1 })
		code, _, _ = f.Temporal(t, "workflow", "cancel", "--workflow-id", "cli-1")
		require.Zero(t, code)
		harness.Eventually(t, "no process is left", func() bool { return len(harness.Alive(f.mark)) == 0 })
		code, out, errOut = f.Temporal(t, "workflow", "result", "--workflow-id", "cli-1")
		assert.NotZero(t, code)
		assert.Contains(t, out+errOut, "CANCELED")
	})

	t.Run("no input, and input of another kind", func(t *testing.T) {
		f.t = t
		for _, args := range [][]string{{}, {"--input", `"text"`}, {"--input", `[1, 2]`}, {"--input", `{}`}} {
			id := "cli-5-" + filepath.Base(t.TempDir())
			code, out, errOut := f.Temporal(t, append([]string{"workflow", "start", "--type", "ClusterRun", "--task-queue", "clusterrun", "--workflow-id", id}, args...)...)
			require.Zero(t, code, out+errOut)
			_, out, errOut = f.Temporal(t, "workflow", "result", "--workflow-id", id, "--output", "json")
			assert.Contains(t, out+errOut, "InvalidRunSpec", args)
		}
	})
}
