package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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

// Tasks in Go, Python and bash meet at one barrier (MPR-11), and each has a result.
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
            clusterrun.progress(1)
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
}

// The status of a run shows the reported progress of its tasks, and why one was restarted.
func TestProgressIsSeen(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	p := l.start("run", "--id", "steps", "-n", "2", "--auto-restart", "--env", l.mark, "--env", "CR="+harness.Clusterrun(t), "--", "bash", "-c",
		harness.Napping(`[ $RANK$CLUSTERRUN_RESTART_COUNT != 10 ] || exit 3; "$CR" task progress $((RANK + 1)) 4 $'\e[31mloss\e[0m\n0.'"$RANK"$'\a'; until [ -e done ]; do nap; done`))
	harness.Eventually(t, "status has it", func() bool {
		code, stdout, _ := l.run("status", "steps")
		return code == 0 && strings.Contains(stdout, "PROGRESS") &&
			strings.Contains(stdout, "25% (1/4) loss 0.0") && strings.Contains(stdout, "50% (2/4) loss 0.1")
	})
	harness.Eventually(t, "the restart has its cause", func() bool {
		return regexp.MustCompile(`worker-1 on \S+ \(rank 1\) exited with exit code 3; worker-1 restarted \(attempt_1\)\n`).MatchString(p.Stderr())
	})
	_, stdout, _ := l.run("status", "steps")
	assert.NotContains(t, stdout, "\x1b")
	assert.NotContains(t, stdout, "\a")
	require.NoError(t, os.WriteFile(filepath.Join(l.home, "done"), nil, 0o600))
	assert.Zero(t, p.ExitCode())
}

// A slow rank is named while the run is open and in its record. Ranks that are alike are not.
func TestASlowRankIsNamed(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	spec := filepath.Join(l.home, "slow.yaml")
	require.NoError(t, os.WriteFile(spec, []byte(`
command:
  - python3
  - -c
  - |
    import os, time, clusterrun
    name = os.environ["CLUSTERRUN_TASK"]
    for step in range(12):
        time.sleep(0.4 if name == "uneven-2" else 0.2)
        clusterrun.progress(step)
tasks: [{type: even, count: 2}, {type: uneven, count: 4}]
`), 0o600))
	code, r, stderr := l.json("--id", "slow", "--env", modulePath(t, l), spec)
	require.Zero(t, code, stderr)
	require.Len(t, r.Slow, 1)
	assert.Equal(t, "uneven-2", r.Slow[0].Task)
	assert.InDelta(t, 2, r.Slow[0].Ratio, 0.5)
	_, status, _ := l.run("status", "slow")
	assert.Contains(t, status, "\nslow: uneven-2 (rank 4) on ")
}

// A value is refused if it is nested so deep that the run's result could not be read with it,
// and so is a result file with such a value. Other values are handed on.
func TestResultsOfAllShapes(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	deep := strings.Repeat("[", 9999) + strings.Repeat("]", 9999)
	require.NoError(t, os.WriteFile(filepath.Join(l.home, "deep"), []byte(deep), 0o600))
	largest := `"` + strings.Repeat("<", 256<<10-2) + `"`
	require.NoError(t, os.WriteFile(filepath.Join(l.home, "largest"), []byte(largest), 0o600))
	code, r, stderr := l.json("-n", "6", "--on-failure", "continue", "--", "bash", "-c", `
case $RANK in
0) "$CR" task result - < deep || { echo "code $?" >&2; "$CR" task result '{"a": 1, "a": 2}'; } ;;
1) "$CR" task result 1e400 ;;
2) cp deep "$CLUSTERRUN_RESULT_FILE" ;;
3) "$CR" task result 1; "$CR" task error oops; "$CR" task result 3 ;;
4) printf '%0500000d' 0 | tr 0 1 | "$CR" task result - ;;
5) PYTHONPATH=$("$CR" task python --dir) python3 -c 'import clusterrun; clusterrun.result("x" * 3_000_000)' ;;
esac`)
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "to a depth of 9999; the limit is 500")
	assert.Equal(t, 1, strings.Count(stderr, "code 125\n"), stderr)
	assert.Equal(t, `{"a":1,"a":2}`, compacted(t, r.Tasks[0].Value))
	assert.Equal(t, "1e400", compacted(t, r.Tasks[1].Value))
	assert.Equal(t, spec.CauseOrigin, r.Tasks[2].Exit.Cause)
	assert.Contains(t, r.Tasks[2].Exit.Message, "a depth of 9999; the limit is 500")
	assert.Equal(t, "3", compacted(t, r.Tasks[3].Value))
	for i, size := range map[int]int{4: 500_000, 5: 3_000_002} {
		assert.Equal(t, spec.CauseCompleted, r.Tasks[i].Exit.Cause)
		assert.Empty(t, r.Tasks[i].Value)
		info, err := os.Stat(r.Tasks[i].Exit.ValueFile)
		if assert.NoError(t, err) {
			assert.Equal(t, int64(size), info.Size())
			assert.Equal(t, os.FileMode(0o600), info.Mode())
		}
	}
	assert.Contains(t, stderr, "worker-5 returned what is in "+r.Tasks[5].Exit.ValueFile)
	require.NotNil(t, r.FirstFailure)
	assert.Equal(t, "worker-2", r.FirstFailure.Task)

	// On its way to the server and back the value becomes six times as long.
	code, r, stderr = l.json("-n", "1", "--", "bash", "-c", `"$CR" task result - < largest`)
	assert.Zero(t, code, stderr)
	assert.Empty(t, r.Tasks[0].Value)
	assert.Contains(t, r.LeftOut.Values, "worker-0")
	b := must.Get(os.ReadFile(filepath.Join(r.Tasks[0].Exit.LogDir, "result.json")))(t)
	assert.Equal(t, largest, string(b))
}

func compacted(t *testing.T, value json.RawMessage) string {
	t.Helper()
	b := must.Get(json.Marshal(value))(t)
	return string(b)
}
