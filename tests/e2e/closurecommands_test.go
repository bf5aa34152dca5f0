package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// fed runs a command that reads this.
func (l *local) fed(in string, args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	c := exec.Command(harness.Clusterrun(l.t), args...)
	c.Env = harness.Env(l.home)
	var out, problems bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(in), &out, &problems
	if err := c.Run(); err != nil {
		require.NotNil(l.t, c.ProcessState, err)
	}
	return c.ProcessState.ExitCode(), out.String(), problems.String()
}

// The commands for closures, from the shell.
func TestClosureCommands(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	python := must.Get(exec.LookPath("python3"))(t)
	run := l.start("run", "--id", "shell", "-n", "1",
		"--env", "PYTHONPATH="+filepath.Join(harness.Root(), "activities/tasks/python"), "--env", "PYTHONDONTWRITEBYTECODE=1",
		"--env", "DIR="+l.home, "--", python, "-c", `
import clusterrun, os, time
@clusterrun.function
def add(a, b=1):
    return a + b
while not os.path.exists(os.environ["DIR"] + "/go"):
    time.sleep(0.01)
clusterrun.serve()`)
	harness.Eventually(t, "the run is there", func() bool {
		code, _, _ := l.run("status", "shell")
		return code == 0
	})

	// There is no queue yet, and asking for it does not make one.
	for range 2 {
		for _, args := range [][]string{{"call", "list", "shell"}, {"call", "get", "shell", "1"}, {"call", "cancel", "shell", "--all"}} {
			assert.Contains(t, l.fails(2, args...), `run "shell" has no calls: no task called serve(), and nothing was scheduled`)
		}
		assert.Empty(t, l.ok("call", "wait", "--wait-timeout", "0", "shell"))
		l.ok("call", "wait", "shell", "--wait-timeout", "1m")
	}

	// Calls piped into it reach the queue, although no task serves yet.
	code, stdout, stderr := l.fed(`{"id":1,"op":"schedule","message":{"client":"c","batch":1,"closures":[{"function":"add","args":[1]}]}}`+"\n", "call", "pipe", "shell")
	assert.Zero(t, code, stderr)
	assert.Regexp(t, `^\{"event":"open","run":"shell","answer":\{"at":".+","room":\d+\}\}\n\{"id":1,"answer":\{"first":1,.*\}\}\n$`, stdout)
	assert.Contains(t, l.fails(125, "call", "pipe", "nobody"), "nobody")
	var lines strings.Builder
	for i := range 50 {
		fmt.Fprintf(&lines, `{"function":"add","args":[%d],"kwargs":{"b":10},"options":{"key":"k%d"}}`+"\n", i, i%40)
	}
	code, stdout, stderr = l.fed(lines.String(), "call", "shell", "--from", "-")
	assert.Zero(t, code, stderr)
	ids := strings.Fields(stdout)
	require.Len(t, ids, 50)
	assert.Equal(t, ids[:10], ids[40:], "the same keys")
	code, stdout, stderr = l.run("call", "wait", "--wait-timeout", "0", "shell", "--json")
	assert.Equal(t, 124, code)
	assert.JSONEq(t, `{"run_id": "shell", "done": false}`, stdout)
	assert.Contains(t, stderr, "run shell: not all calls have ended")
	_, stdout, _ = l.run("call", "list", "shell")
	assert.Contains(t, stdout, "41 queued calls wait until a task serves that has registered add\nno task serves\n")

	l.write("go", "")
	stdout = l.ok(append([]string{"call", "get", "shell"}, ids...)...)
	var want strings.Builder
	for i := range 50 {
		fmt.Fprintln(&want, i%40+10)
	}
	assert.Equal(t, want.String(), stdout)
	assert.Equal(t, "2\n", l.ok("call", "get", "shell", "1"))
	assert.Contains(t, l.fails(2, "call", "get", "shell", "1", "999"), "no closure 999")
	l.ok("call", "wait", "shell")
	assert.Contains(t, l.ok("call", "list", "shell"), "41 finished")
	assert.Contains(t, l.fails(2, "call", "cancel", "shell", "1", "9999"), "there is no call 9999; the run has 41 calls")
	_, stderr = l.succeeds("call", "cancel", "shell", "1")
	assert.Contains(t, stderr, "nothing to cancel")
	assert.Contains(t, l.fails(2, "call", "shell", "add", "-3"), "write -- before arguments that begin with a dash")
	assert.Equal(t, "-2\n", l.ok("call", "shell", "--wait", "--", "add", "-3", "1"))
	assert.Contains(t, l.fails(2, "call", "shell", "add", "1", "--call-timeout", "-1s"), "--call-timeout: must be 0s or more")
	closureErrors(l)
	assert.Contains(t, l.fails(2, "call", "shell", "add", "1", "--task", "worker-9"), `--task: the run has no task "worker-9"; it has worker-0`)
	assert.Equal(t, "2\n", l.ok("call", "shell", "add", "1", "--task", "worker-0", "--wait"))
	code, _, stderr = l.run("stop", "shell")
	assert.Zero(t, code, stderr)
	assert.NotZero(t, run.ExitCode())

	for _, args := range [][]string{{"call", "wait", "shell"}, {"call", "wait", "--wait-timeout", "0", "shell"}, {"call", "shell", "add", "1"}} {
		code, _, stderr = l.run(args...)
		assert.Equal(t, 125, code, args)
		assert.Contains(t, stderr, "run shell has ended (", args)
		assert.Contains(t, stderr, "`clusterrun call get shell ID` still has the values", args)
	}
	assert.Equal(t, "2\n", l.ok("call", "get", "shell", "1"))
}

// closureErrors expects that an error is reported once: to the command that waits for it, or
// else to the next one. After that all commands work.
func closureErrors(l *local) {
	t := l.t
	assert.Contains(t, l.fails(3, "call", "shell", "add", `"x"`, "--wait"), "TypeError")
	assert.Equal(t, "2\n", l.ok("call", "shell", "add", "1", "--wait"))

	assert.Contains(t, l.fails(2, "call", "shell", "ad"), `FUNCTION: no task has registered a function "ad"; did you mean "add"?`)

	stdout := l.ok("call", "shell", "add", `"y"`)
	failed := strings.TrimSpace(stdout)
	code, _, _ := l.run("call", "get", "shell", failed)
	assert.Equal(t, 3, code, "which leaves it for the next one")
	code, stdout, stderr := l.run("call", "shell", "add", "1")
	assert.Equal(t, 3, code, stdout)
	assert.Contains(t, stderr, "call "+failed+": TypeError")
	assert.Equal(t, "2\n", l.ok("call", "shell", "add", "1", "--wait"))

	code, stdout, stderr = l.fed(`{"function":"add","args":[1]}
{"function":"add","args":["z"]}
{"function":"add","args":[2]}
`, "call", "shell", "--from", "-", "--wait")
	assert.Equal(t, 3, code)
	assert.Equal(t, "2\n", stdout)
	assert.Contains(t, stderr, "TypeError")
	l.ok("call", "wait", "shell")
}

// While no host worker executes a run, commands that wait for its queue say why, and commands
// that only ask are refused.
func TestClosureCommandsWhileNobodyExecutesTheRun(t *testing.T) {
	takesLong(t)
	t.Parallel()
	f := newFixture(t)
	// The run continues without the process that is lost.
	run := f.start(&spec.RunSpec{AutoRestart: true, Tasks: []spec.TaskGroup{group("worker", 1, until)}})
	id := run.GetID()
	f.startedOnce(0)
	code, stdout, stderr := f.CLI(t, "call", id, "square", "1")
	require.Zero(t, code, stderr)
	require.Equal(t, "1\n", stdout)

	f.worker.KillWithSide()
	f.worker.ExitCode()

	const nobody = "no host worker executes its workflow at the moment"
	waiting := f.StartCLI(t, "call", id, "square", "2")
	// Requests that change the queue may still reach it later, when there is a worker again.
	for _, args := range [][]string{{"call", "list", id}, {"call", "resume", id}, {"call", "wait", "--wait-timeout", "0", id}} {
		stderr := f.Fails(t, 125, args...)
		assert.Contains(t, stderr, nobody, args)
		assert.NotContains(t, stderr, "RST_STREAM", args)
	}
	for _, args := range [][]string{{"call", "wait", id, "--wait-timeout", "8s"}, {"call", "get", id, "1", "--wait-timeout", "8s"}} {
		code, _, stderr = f.CLI(t, args...)
		assert.Equal(t, 124, code, "%s: %s", args, stderr)
		assert.Contains(t, stderr, nobody, args)
	}
	harness.Eventually(t, "who schedules is told", func() bool { return strings.Contains(waiting.Stderr(), nobody) })

	f.worker.Restart()
	require.Zero(t, waiting.ExitCode(), waiting.Stderr())
	assert.Equal(t, "2\n", waiting.Stdout())
	touch(t, f, "go")
	f.result(run)
}
