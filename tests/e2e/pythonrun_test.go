package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// A Python program runs runs, and expects what subprocess.run does. When it is interrupted, its
// run is stopped: the task has its grace, in which it prints a line.
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
	l := newLocal(t)
	env := harness.Env(l.home, "CLUSTERRUN_BIN="+harness.Clusterrun(t), "CLUSTERRUN_DEVSERVER="+harness.Devserver(t),
		"PYTHONPATH="+filepath.Join(harness.Root(), "activities/tasks/python"), "PYTHONDONTWRITEBYTECODE=1")
	p := harness.Start(t, t.TempDir(), env, "python3", "-u", "-c", runsOfPython)
	assert.Zero(t, p.ExitCode(), p.Stderr())
	assert.Equal(t, "7\n['[worker-0]:    rank 0', '[worker-1]:    rank 1']\n2 True\n[worker-0]:    ended itself\ninterrupted\n", p.Stdout())
	assert.Contains(t, p.Stderr(), "got SIGINT: stopping run")
	assert.NotContains(t, p.Stderr(), "killing")
}
