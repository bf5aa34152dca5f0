package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// json runs `clusterrun run --json` and returns its result.
func (l *local) json(args ...string) (code int, r spec.RunResult, stderr string) {
	l.t.Helper()
	code, stdout, stderr := l.run(append([]string{"run", "--json", "--env", l.mark, "--env", "CR=" + harness.Clusterrun(l.t)}, args...)...)
	require.NoError(l.t, json.Unmarshal([]byte(stdout), &r), "%s\n%s", stdout, stderr)
	return code, r, stderr
}

// Tasks in Go, Python and bash meet at one barrier, and each returns a result.
func TestTasksOfThreeLanguages(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	program := filepath.Join(l.home, "task")
	build := exec.Command("go", "build", "-o", program, "./tests/e2e/testdata/task")
	build.Dir = harness.Root()
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	spec := filepath.Join(l.home, "three.yaml")
	require.NoError(t, os.WriteFile(spec, []byte(`
tasks:
  - {type: go, count: 2, command: [`+program+`]}
  - type: python
    count: 2
    command:
      - python3
      - -c
      - |
        import clusterrun
        def train():
            step = clusterrun.get_barrier("step", timeout=60, local=True)
            places = [step.wait() for _ in range(3)]
            clusterrun.progress(1, loss=0.5)
            return {"places": places, "members": [m["task"] for m in clusterrun.cluster()]}
        clusterrun.main(train)
  - type: bash
    count: 1
    command:
      - bash
      - -c
      - |
        set -e
        for _ in 1 2 3; do "$CR" task barrier --local --timeout 1m step; done
        "$CR" task progress 1 2 half
        "$CR" task info --json | "$CR" task result -
        [ "$CLUSTERRUN_RESTART_COUNT" = 0 ]
`), 0o600))
	code, r, stderr := l.json("--env", modulePath(t, l), spec)
	require.Zero(t, code, stderr)
	assert.JSONEq(t, `{"rounds": 3}`, string(task(r, "go-0").Value))
	assert.JSONEq(t, `{"rounds": 3}`, string(task(r, "go-1").Value))
	assert.JSONEq(t, `{"places": [3, 3, 3], "members": ["go-0", "go-1", "python-0", "python-1", "bash-0"]}`, string(task(r, "python-1").Value))
	var info struct {
		Task      string
		Rank      int
		WorldSize int `json:"world_size"`
		Address   string
	}
	require.NoError(t, json.Unmarshal(task(r, "bash-0").Value, &info))
	assert.Equal(t, "bash-0", info.Task)
	assert.Equal(t, 4, info.Rank)
	assert.Equal(t, 5, info.WorldSize)
	sockets := must.Get(filepath.Glob(filepath.Join(l.home, ".local/state/clusterrun/runs/*")))(t)
	assert.Empty(t, sockets, "nothing is left")
	metrics := must.Get(filepath.Glob(filepath.Join(l.home, ".local/state/clusterrun/logs/*/*/attempt_0/2/metrics")))(t)
	require.Len(t, metrics, 1)
	assert.Contains(t, readFile(t, metrics[0]), `"metrics":{"loss":0.5}`)
}
