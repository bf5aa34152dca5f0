package e2e

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// local is clusterrun run in a separate home, with its own server.
type local struct {
	t    *testing.T
	home string
	mark string
}

func newHome(t *testing.T) *local {
	l := &local{t: t, home: t.TempDir()}
	l.mark = "E2E_MARK=" + strings.ReplaceAll(l.home, "/", "-")
	return l
}

func newLocal(t *testing.T) *local {
	l := newHome(t)
	t.Cleanup(func() {
		l.endBackgroundWorker() // it would restart the server
		if s := l.server(); s != nil {
			_ = syscall.Kill(s.PID, syscall.SIGTERM)
			harness.Eventually(t, "the own server has ended", func() bool { s := harness.State(s.PID); return s == "" || s == "Z" })
		}
	})
	return l
}

func (l *local) start(args ...string) *harness.Process {
	l.t.Helper()
	return harness.Start(l.t, l.home, harness.Env(l.home), append([]string{harness.Clusterrun(l.t)}, args...)...)
}

func (l *local) run(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	p := l.start(args...)
	code = p.ExitCode()
	return code, p.Stdout(), p.Stderr()
}

// succeeds runs a command that must succeed, and returns its output.
func (l *local) succeeds(args ...string) (stdout, stderr string) {
	l.t.Helper()
	code, stdout, stderr := l.run(args...)
	require.Zero(l.t, code, "%q\n%s%s", args, stdout, stderr)
	return stdout, stderr
}

// ok is succeeds for commands that may write to stderr.
func (l *local) ok(args ...string) (stdout string) {
	l.t.Helper()
	stdout, _ = l.succeeds(args...)
	return stdout
}

// fails runs a command that must exit with the given code, and returns its stderr.
func (l *local) fails(want int, args ...string) (stderr string) {
	l.t.Helper()
	code, stdout, stderr := l.run(args...)
	require.Equal(l.t, want, code, "%q\n%s%s", args, stdout, stderr)
	return stderr
}

// tasks are the tasks' processes, which carry the mark.
func (l *local) tasks() []int { return harness.Alive(l.mark) }

// A grandchild in a separate session still belongs to the task.
const withGrandchild = `(setsid sleep 10000 &) ; exec sleep 10000`

func countSleeps(pids []int) int {
	n := 0
	for _, pid := range pids {
		if strings.HasPrefix(harness.Cmdline(pid), "sleep") {
			n++
		}
	}
	return n
}

func cut(mark string) (key, value string, ok bool) { return strings.Cut(mark, "=") }
