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

// example runs one of starter/examples according to its README.
func (l *local) example(name string, path string) (int, spec.RunResult, string) {
	l.t.Helper()
	p := harness.Start(l.t, harness.Root(), []string{"PATH=" + path, "HOME=" + l.home},
		harness.Clusterrun(l.t), "run", "--json", filepath.Join("starter/examples", name, "run.yaml"))
	code := p.ExitCode()
	r := must.JSON[spec.RunResult](l.t, p.Stdout())
	return code, r, p.Stderr()
}

// The examples run as their READMEs say. README.md runs ddp's program, so that only its spec is
// checked, and tests cannot install the SDK for Python, so that example is only compiled.
func TestExamples(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	l.ok("validate", filepath.Join(harness.Root(), "starter/examples/ddp/run.yaml"))
	path := filepath.Join(harness.Root(), "starter/examples/python/workflows.py")
	p := harness.Start(t, t.TempDir(), os.Environ(), "python3", "-c", "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')", path)
	assert.Zero(t, p.ExitCode(), p.Stderr())
	t.Run("logistic", func(t *testing.T) { testLogistic(t, l) })
	t.Run("coordinator", func(t *testing.T) { testCoordinator(t, l) })
}

// A chief, three workers and two parameter servers find each other through TF_CONFIG and train on
// real data; the chief returns the accuracy.
func testLogistic(t *testing.T, l *local) {
	code, r, stderr := l.example("logistic", os.Getenv("PATH"))
	require.Zero(t, code, stderr)
	var value struct {
		Accuracy float64 `json:"accuracy"`
	}
	require.NoError(t, json.Unmarshal(task(r, "chief-0").Value, &value))
	assert.Greater(t, value.Accuracy, 0.9)
	for _, ps := range []string{"ps-0", "ps-1"} {
		assert.Equal(t, spec.CauseCollateral, task(r, ps).Exit.Cause, ps)
	}
}

// A chief schedules closures on three workers, according to its README, and prints their values.
func testCoordinator(t *testing.T, l *local) {
	readme := must.Get(os.ReadFile(filepath.Join(harness.Root(), "starter/examples/coordinator/README.md")))(t)
	_, rest, found := strings.Cut(string(readme), "\n    PYTHONPATH=")
	require.True(t, found)
	command, rest, _ := strings.Cut(rest, "\n")
	_, rest, found = strings.Cut(rest, "The chief prints\n\n")
	require.True(t, found)
	shown, _, _ := strings.Cut(rest, "\n\n")
	p := harness.Start(t, harness.Root(), harness.Env(l.home, "PYTHONDONTWRITEBYTECODE=1",
		"PATH="+filepath.Dir(harness.Clusterrun(t))+":"+os.Getenv("PATH"), "CLUSTERRUN_DEVSERVER="+harness.Devserver(t)),
		"bash", "-c", "PYTHONPATH="+command)
	require.Zero(t, p.ExitCode(), p.Stderr())
	for line := range strings.Lines(shown + "\n") {
		assert.Contains(t, p.Stdout(), "[chief-0]:     "+strings.TrimPrefix(line, "    "))
	}
}

// A Python program starts runs, with the same expectations as for subprocess.run. When it is
// interrupted, its run stops, and the task prints a line within its grace.
const runsOfPython = `
import json, os, subprocess, threading, clusterrun
done = clusterrun.run(["-q", "-n", "2", "--", "sh", "-c", "exit $((RANK * 7))"], stderr=subprocess.DEVNULL)
print(done.returncode)

spec = {"tasks": [{"type": "worker", "count": 2}], "command": ["sh", "-c", "echo rank $RANK"]}
print(sorted(clusterrun.run(spec, check=True, capture_output=True, text=True).stdout.splitlines()))

try:
    clusterrun.run({"command": ["true"], "colour": "red"}, check=True, capture_output=True, text=True)
except subprocess.CalledProcessError as e:
    print(e.returncode, "colour" in e.stderr)

os.mkfifo("there")
late = "trap 'echo ended itself; exit' TERM; echo there > there; sleep 60 & wait"
def interrupt():
    with open("there") as f:
        f.read()
    os.kill(os.getpid(), 2)
threading.Thread(target=interrupt).start()
try:
    clusterrun.run(["-n", "1", "--", "bash", "-c", late])
except KeyboardInterrupt:
    print("interrupted")
`

func TestRunsOfPython(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	env := harness.Env(l.home, "CLUSTERRUN_BIN="+harness.Clusterrun(t), "CLUSTERRUN_DEVSERVER="+harness.Devserver(t),
		"PYTHONPATH="+filepath.Join(harness.Root(), "activities/tasks/python"), "PYTHONDONTWRITEBYTECODE=1")
	p := harness.Start(t, t.TempDir(), env, "python3", "-u", "-c", runsOfPython)
	assert.Zero(t, p.ExitCode(), p.Stderr())
	assert.Equal(t, "7\n['[worker-0]:    rank 0', '[worker-1]:    rank 1']\n2 True\n[worker-0]:    ended itself\ninterrupted\n", p.Stdout())
	assert.Contains(t, p.Stderr(), "got SIGINT: stopping run")
	assert.NotContains(t, p.Stderr(), "killing")
}
