package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

func TestExec(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	named := func(command string) []int {
		return slices.DeleteFunc(l.tasks(), func(pid int) bool { return !strings.HasPrefix(harness.Cmdline(pid), command) })
	}
	p := l.start("run", "--id", "busy", "-n", "2", "--env", l.mark, "--", "sh", "-c", "echo waiting; [ $RANK = 0 ] || exit 0; sleep 600")
	harness.Eventually(t, "the tasks run", waiting(p, 2))

	code, stdout, stderr := l.run("exec", "busy", "0", "--", "sh", "-c", `echo "$CLUSTERRUN_TASK $E2E_MARK$CLUSTERRUN_SOCKET"; pwd; echo problem >&2; exit 7`)
	assert.Equal(t, 7, code, stderr)
	assert.Equal(t, "worker-0 "+strings.TrimPrefix(l.mark, "E2E_MARK=")+"\n"+l.home+"\n", stdout)
	assert.Equal(t, "problem\n", stderr)
	code, _, stderr = l.run("exec", "busy", "worker-0", "no-such-program")
	assert.Equal(t, 127, code)
	assert.Contains(t, stderr, "no-such-program: command not found on host")
	harness.Eventually(t, "worker-1 has ended", func() bool {
		code, _, stderr = l.run("exec", "busy", "worker-1", "true")
		return code == 125
	})
	assert.Regexp(t, `worker-1 of run busy is not running: it ended .* ago with exit code 0; .clusterrun start busy worker-1. starts it`, stderr)

	x := harness.StartInTerminal(t, l.home, harness.Env(l.home, "ENV="), harness.Clusterrun(t), "exec", "busy", "worker-0", "--", "sh", "-c", "stty size; exec sh")
	x.Expect("24 80")
	x.Type("trap 'stty size' WINCH; sleep 601\n")
	harness.Eventually(t, "the program runs", func() bool { return len(named("sleep 601")) == 1 })
	x.Type("\x03")
	x.Type("echo ended by $?; stty size; exit 3\n")
	x.Expect("ended by 130")
	assert.Equal(t, 3, x.ExitCode())
	assert.Equal(t, x.Before, x.Modes(), "the terminal is as it was")

	killed := l.start("exec", "busy", "worker-0", "--", "sh", "-c", "trap '' HUP; sleep 602 & setsid sleep 602; wait")
	harness.Eventually(t, "the command runs", func() bool { return len(named("sleep 602")) == 2 })
	require.NoError(t, killed.Process.Signal(syscall.SIGKILL))
	harness.Eventually(t, "nothing of the command is left", func() bool { return len(named("sleep 602")) == 0 })

	ends := l.start("exec", "busy", "worker-0", "--", "sh", "-c", "echo started; sleep 603")
	harness.Eventually(t, "the command runs", func() bool { return ends.Stdout() == "started\n" })
	code, _, stderr = l.run("stop", "busy")
	require.Zero(t, code, stderr)
	assert.Equal(t, 125, ends.ExitCode())
	assert.Contains(t, ends.Stderr(), "the task has ended")
	p.ExitCode()
	assert.Empty(t, named("sleep 603"))
}
