package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
)

// A task that waits at a barrier, for one that does not come before it may.
const meets = `
import os, time, clusterrun
while os.environ["RANK"] == "0" and not os.path.exists("go"):
    time.sleep(0.05)
clusterrun.barrier("across", timeout=600)
`

// serves is a task whose closures end when a file allows it, and which notes each call.
const serves = `
import os, time, clusterrun
@clusterrun.function
def square(x):
    with open("calls", "a") as f:
        f.write(f"{x}\n")
    while not os.path.exists("go"):
        time.sleep(0.05)
    return x * x
clusterrun.serve()
`

// Tasks of a host worker that is upgraded in place, twice, stay the processes that they are: they
// meet at the barrier at which they waited, and end the closures that they were in.
func TestUpgradesUnderOpenBarriersAndClosures(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, _, stderr := l.run("worker", "--detach", "--slots", "20")
	require.Zero(t, code, stderr)
	defer l.endBackgroundWorker()
	_, dir, _ := l.run("task", "python", "--dir")
	const tasks, closures = 6, 8
	for id, program := range map[string]string{"meets": meets, "serves": serves} {
		code, _, stderr := l.run("submit", "--id", id, "-n", strconv.Itoa(tasks), "--auto-restart",
			"--env", "PYTHONPATH="+strings.TrimSpace(dir), "--", "python3", "-c", program)
		require.Zero(t, code, stderr)
	}
	for i := range closures {
		code, _, stderr := l.run("call", "serves", "square", strconv.Itoa(i))
		require.Zero(t, code, stderr)
	}
	calls := func() []string {
		text, _ := os.ReadFile(filepath.Join(l.home, "calls"))
		return strings.Fields(string(text))
	}
	harness.Eventually(t, "every task calls a closure", func() bool { return len(calls()) == tasks })
	harness.Eventually(t, "all others wait at the barrier", func() bool {
		_, out, _ := l.run("status", "--barriers", "meets")
		return strings.Contains(out, strconv.Itoa(tasks-1)+" waiting, 1 missing")
	})
	pids := func() (all []int) {
		for _, id := range []string{"meets", "serves"} {
			code, out, stderr := l.run("status", "--json", id)
			require.Zero(t, code, stderr)
			var s starter.Status
			require.NoError(t, json.Unmarshal([]byte(out), &s))
			for _, task := range s.Tasks {
				assert.Zero(t, task.Restarts)
				all = append(all, task.PID)
			}
		}
		return all
	}
	var before []int
	harness.Eventually(t, "all processes are known", func() bool {
		before = pids()
		return !slices.Contains(before, 0)
	})
	same := func() bool { return slices.Equal(before, pids()) }

	for range 2 {
		code, _, stderr := l.run("worker", "upgrade")
		require.Zero(t, code, stderr)
		assert.Contains(t, stderr, strconv.Itoa(2*tasks)+" processes continue")
	}
	harness.Eventually(t, "the same processes are known again", same)

	l.goOn()
	code, _, stderr = l.run("wait", "meets")
	assert.Zero(t, code, stderr)
	for i := range closures {
		code, value, stderr := l.run("call", "get", "serves", strconv.Itoa(i+1))
		require.Zero(t, code, stderr)
		assert.Equal(t, strconv.Itoa(i*i)+"\n", value)
	}
	called := calls()
	slices.Sort(called)
	assert.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, called, "each once")
	assert.Equal(t, before[tasks:], pids()[tasks:])
	code, _, stderr = l.run("stop", "serves")
	assert.Zero(t, code, stderr)
	_, _, _ = l.run("wait", "serves")
}
