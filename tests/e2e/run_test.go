package e2e

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// local is clusterrun run in a separate home, with its own server.
type local struct {
	t    *testing.T
	home string
	mark string
}

func newLocal(t *testing.T) *local {
	l := &local{t: t, home: t.TempDir()}
	l.mark = "E2E_MARK=" + strings.ReplaceAll(l.home, "/", "-")
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

func TestRun(t *testing.T) {
	t.Parallel()
	l := newLocal(t)

	t.Run("json", func(t *testing.T) {
		code, stdout, _ := l.run("run", "--json", "-n", "2", "--", "bash", "-c", "echo noise; exit 3")
		assert.Equal(t, 3, code)
		r := must.JSON[spec.RunResult](t, stdout)
		assert.Equal(t, spec.VerdictFailed, r.Verdict)
		assert.Len(t, r.Tasks, 2)
	})

	t.Run("SEED-84 a run ID in use", func(t *testing.T) {
		p := l.start("run", "--id", "twice", "-n", "1", "--", "sleep", "1000")
		harness.Eventually(t, "the run is there", func() bool { return strings.Contains(p.Stderr(), "twice") })
		harness.Eventually(t, "the second is refused", func() bool {
			code, _, stderr := l.run("run", "--id", "twice", "-n", "1", "--", "true")
			return code == 2 && strings.Contains(stderr, "twice")
		})
		p.Kill(syscall.SIGINT)
		assert.Equal(t, 130, p.ExitCode())
	})

}

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

// Processes on other hosts do not inherit the shell's environment, except for the variables named
// by -x.
func TestTheShellsEnvironment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := func(args ...string) (code int, stderr string) {
		home := t.TempDir()
		env := harness.Env(home, "TEMPORAL_ADDRESS="+f.Address, "GREETING=hello", f.mark)
		argv := append([]string{harness.Clusterrun(t), "run", "--remote", "--dir", f.dir}, args...)
		p := harness.Start(t, home, env, append(argv, "--", "bash", "-c", `[ "$GREETING" = hello ] || exit 3`)...)
		return p.ExitCode(), p.Stderr()
	}
	code, stderr := run()
	assert.Equal(t, 3, code, stderr)
	code, stderr = run("-xGREETING")
	assert.Zero(t, code, stderr)
	// The same command line without --remote.
	f.OK(t, "run", "-x", "GREETING=hello", "--", "bash", "-c", `[ "$GREETING" = hello ] || exit 3`)
}

// A stdin that no task can read is refused, and a stdin for a named task is passed to it.
func TestStdin(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	p := harness.Start(t, t.TempDir(), harness.Env(l.home), "bash", "-c", `echo a | `+harness.Clusterrun(t)+` run -n 2 --stdin worker-1 -- bash -c 'echo $RANK:$(cat)'`)
	assert.Zero(t, p.ExitCode(), p.Stderr())
	assert.Contains(t, p.Stdout(), "1:a\n")
	for name, c := range map[string]struct{ args, want string }{
		"no such task":   {"run -n 2 --stdin boss-0 -- true", "--stdin boss-0: give none or a task; the run has worker-0 to worker-1"},
		"the spec":       {"run --stdin worker-0 -", "--stdin worker-0: the spec is read from stdin; leave --stdin out"},
		"the foreground": {"run --foreground worker-0 --stdin worker-0 -- true", "--stdin worker-0: worker-0 has stdin, with --foreground; leave --stdin out"},
		"elsewhere":      {"run --remote --stdin worker-0 -- true", "with --remote no task can read the stdin of this command"},
		"by default":     {"run --remote -- true", "stdin has input, and with --remote no task can read the stdin of this command; put it into a file that the hosts have, or drop it with --stdin none"},
		"no task there":  {"run -H host.invalid:2 --stdin boss-0 -- true", "--stdin boss-0: give none or a task; the run has worker-0 to worker-1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := harness.Start(t, t.TempDir(), harness.Env(l.home), "bash", "-c",
				`printf 'command: ["true"]\ntasks: [{type: worker}]' | `+harness.Clusterrun(t)+" "+c.args)
			assert.Equal(t, 2, p.ExitCode())
			assert.Contains(t, p.Stderr(), c.want)
		})
	}
}
