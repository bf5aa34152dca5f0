package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// stuck is a Python program that waits forever in a named function, and does not use the
// clusterrun module.
const stuck = `
import threading
def waits_for_its_peers():
    print("waiting", flush=True)
    threading.Event().wait()
waits_for_its_peers()
`

// modulePath returns the variable that lets Python programs find the module.
func modulePath(t *testing.T, l *local) string {
	t.Helper()
	stdout := l.ok("task", "python", "--dir")
	dir := strings.TrimSpace(stdout)
	require.FileExists(t, filepath.Join(dir, "clusterrun", "__init__.py"))
	return "PYTHONPATH=" + dir
}

func waiting(p *harness.Process, tasks int) func() bool {
	return func() bool { return strings.Count(p.Stdout(), "waiting") == tasks }
}

// programs returns the tasks' processes. Their commands contain the mark.
func programs(t *testing.T, l *local) []int {
	return slices.DeleteFunc(l.tasks(), func(pid int) bool {
		return strings.HasPrefix(harness.Cmdline(pid), harness.Clusterrun(t))
	})
}

func TestStacksOnRequest(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	p := l.start("run", "--id", "stuck", "--task", "chief=1", "--task", "worker=2", "--env", l.mark, "--", "python3", "-c", stuck)
	harness.Eventually(t, "all tasks wait", waiting(p, 3))

	stdout := l.ok("stacks", "stuck")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 3, stdout)
	assert.Equal(t, "1s later all 3 were at the same lines", lines[2])
	assert.Regexp(t, `^3 of 3 \(ranks 0-2\) wait for a lock in waits_for_its_peers +<string>:\d+ waits_for_its_peers ← <string>:\d+ <module>$`, lines[0])
	assert.Contains(t, lines[1], "cannot tell")

	explained := l.ok("status", "--why", "stuck")
	assert.Contains(t, explained, ": chief-0, worker-0, worker-1\n")
	assert.Contains(t, explained, lines[0], "it says what they are doing as well")

	stdout = l.ok("stacks", "--files", "stuck")
	lines = strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 4, stdout)
	assert.Equal(t, []string{"TASK", "HOST", "FILE"}, strings.Fields(lines[0]))
	for i, task := range []string{"chief-0", "worker-0", "worker-1"} {
		fields := strings.Fields(lines[i+1])
		require.Len(t, fields, 3, stdout)
		assert.Equal(t, task, fields[0])
		text := must.Get(os.ReadFile(fields[2]))(t)
		assert.Contains(t, string(text), "What "+task+" was doing")
		assert.Contains(t, string(text), "in waits_for_its_peers")
		assert.Contains(t, string(text), "futex")
	}

	stdout = l.ok("stacks", "--show", "stuck", "worker-1")
	assert.Equal(t, 1, strings.Count(stdout, "What "), stdout)
	assert.Contains(t, stdout, "What worker-1 was doing")
	assert.Equal(t, 1, strings.Count(stdout, "in waits_for_its_peers"), "only what was said now: %s", stdout)

	stdout = l.ok("stacks", "--json", "stuck", "chief-0")
	var out struct {
		RunID  string `json:"run_id"`
		Stacks []struct{ Task, Host, File string }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &out), stdout)
	assert.Equal(t, "stuck", out.RunID)
	require.Len(t, out.Stacks, 1)
	assert.Equal(t, "chief-0", out.Stacks[0].Task)
	assert.NotEmpty(t, out.Stacks[0].Host)
	assert.FileExists(t, out.Stacks[0].File)

	code, _, stderr := l.run("stacks", "stuck", "worker-9")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "worker-9")
	assert.Len(t, programs(t, l), 3, "nobody has ended of it")

	p.Kill(syscall.SIGINT)
	assert.Equal(t, 130, p.ExitCode())
	assert.Contains(t, l.ok("stacks", "--last", "chief-0"), "stacks-", "what was captured is kept")
	assert.Contains(t, l.fails(125, "stacks", "stuck", "worker-9"), "has ended, and this machine has no stacks of it")
}

// If a rank holds up the run, it is named. `make bench BENCH=Hangs` plays more.
func TestWhoHoldsTheOthersUp(t *testing.T) {
	t.Parallel()
	h := harness.Hang{Program: "python", Wait: "python", Deed: "computes", Ranks: 4, Guilty: 2}
	s := harness.NewHangStage(t, withSharedServer(t).start, h)
	found := s.Play(h)
	for try := 0; strings.HasPrefix(found.Sentence, "cannot tell") && try < 3; try++ { // native stacks may be late
		found = s.Play(h)
	}
	var text strings.Builder
	assert.NoError(t, found.Write(&text))
	assert.True(t, h.Named(found), &text)
}
