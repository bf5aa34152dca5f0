package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// local is clusterrun run in a home of its own: it brings its own server up.
type local struct {
	t    *testing.T
	home string
	mark string
}

func newLocal(t *testing.T) *local {
	l := &local{t: t, home: t.TempDir()}
	l.mark = "E2E_MARK=" + strings.ReplaceAll(l.home, "/", "-")
	t.Cleanup(func() {
		l.endBackgroundWorker() // it would start the server again
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

// ok is succeeds for commands whose stderr does not matter.
func (l *local) ok(args ...string) (stdout string) {
	l.t.Helper()
	stdout, _ = l.succeeds(args...)
	return stdout
}

// fails runs a command that must end with the exit code, and returns its stderr.
func (l *local) fails(want int, args ...string) (stderr string) {
	l.t.Helper()
	code, stdout, stderr := l.run(args...)
	require.Equal(l.t, want, code, "%q\n%s%s", args, stdout, stderr)
	return stderr
}

// tasks are the processes of tasks, which carry the mark.
func (l *local) tasks() []int { return harness.Alive(l.mark) }

func TestRun(t *testing.T) {
	t.Parallel()
	l := newLocal(t)

	t.Run("MPR-05 SEED-05 prefixes", func(t *testing.T) {
		stdout := l.ok("run", "--task", "chief=1", "--task", "worker=2", "--task", "ps=1", "--task", "evaluator=1", "--set", "dependence_on_chief=false", "--", "echo", "This is something printed.")
		for _, line := range []string{
			"[chief-0]:     This is something printed.\n",
			"[worker-0]:    This is something printed.\n",
			"[worker-1]:    This is something printed.\n",
			"[ps-0]:        This is something printed.\n",
			"[evaluator-0]: This is something printed.\n",
		} {
			assert.Contains(t, stdout, line)
		}
	})

	t.Run("exit codes", func(t *testing.T) {
		for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 128 + 9, "exit 255": 255} {
			code, _, stderr := l.run("run", "-n", "1", "--", "bash", "-c", script)
			assert.Equal(t, want, code, "%s: %s", script, stderr)
		}
		code, _, _ := l.run("run", "-n", "1", "--timeout", "1s", "--", "sleep", "1000")
		assert.Equal(t, 124, code)
		assert.Contains(t, l.fails(127, "run", "-n", "1", "--", "no-such-program"), "command not found")
	})

	t.Run("return values", func(t *testing.T) {
		stdout, stderr := l.succeeds("run", "-n", "1", "--", "bash", "-c", `echo 0.97 > "$CLUSTERRUN_RESULT_FILE"`)
		assert.Contains(t, stdout+stderr, "0.97")
	})

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

	t.Run("no line is lost", func(t *testing.T) {
		stdout := l.ok("run", "-n", "2", "--", "bash", "-c", "seq 1 50000; printf last")
		for _, worker := range []string{"[worker-0]:    ", "[worker-1]:    "} {
			var got []string
			for line := range strings.Lines(stdout) {
				if rest, ok := strings.CutPrefix(line, worker); ok {
					got = append(got, strings.TrimSuffix(rest, "\n"))
				}
			}
			require.Len(t, got, 50001)
			assert.Equal(t, "1", got[0])
			assert.Equal(t, "50000", got[49999])
			assert.Equal(t, "last", got[50000])
		}
	})
}

// A grandchild in a session of its own belongs to the task all the same.
const withGrandchild = `(setsid sleep 10000 &) ; exec sleep 10000`

// However a command is ended, its tasks end, and no run stays open.
func TestRunIsKilled(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	started := func(t *testing.T) *harness.Process {
		t.Helper()
		p := l.start("run", "--env", l.mark, "-n", "2", "--", "bash", "-c", "echo started; "+withGrandchild)
		harness.Eventually(t, "the tasks run", func() bool { return countSleeps(l.tasks()) == 4 })
		return p
	}
	gone := func(t *testing.T) {
		t.Helper()
		harness.Eventually(t, "no process is left", func() bool { return len(l.tasks()) == 0 })
	}
	supervisor := func(t *testing.T, p *harness.Process) int {
		t.Helper()
		i := slices.IndexFunc(harness.Children(p.Cmd.Process.Pid), func(pid int) bool { return strings.Contains(harness.Cmdline(pid), supervise.ProgramName) })
		require.GreaterOrEqual(t, i, 0)
		return harness.Children(p.Cmd.Process.Pid)[i]
	}
	t.Run("the command", func(t *testing.T) {
		p := started(t)
		p.Kill(syscall.SIGKILL)
		p.ExitCode()
		gone(t)
		// The run is not left open either.
		harness.Eventually(t, "the run is closed", func() bool {
			code, stdout, _ := l.run("list", "--json")
			var runs []starter.Summary
			return code == 0 && json.Unmarshal([]byte(stdout), &runs) == nil && len(runs) == 1 && !runs[0].Open
		})
	})
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
		t.Run(signal.String(), func(t *testing.T) {
			p := started(t)
			p.Kill(signal)
			assert.Equal(t, want, p.ExitCode())
			gone(t)
		})
	}
	t.Run("twice", func(t *testing.T) {
		p := l.start("run", "--env", l.mark, "-n", "2", "--", "bash", "-c", harness.Napping(`trap '' TERM; echo up; while :; do nap; done`))
		harness.Eventually(t, "the tasks run", func() bool { return strings.Count(p.Stdout(), "up\n") == 2 })
		p.Kill(syscall.SIGINT)
		harness.Eventually(t, "it says that it stops", func() bool { return strings.Contains(p.Stderr(), "again") })
		p.Kill(syscall.SIGTERM) // the same signal may come from timeout(1) for the group, and would not count at once
		assert.Equal(t, 130, p.ExitCode())
		assert.Contains(t, p.Stderr(), "got SIGTERM: killing run")
		gone(t)
	})
	t.Run("the supervisor", func(t *testing.T) {
		p := started(t)
		require.NoError(t, syscall.Kill(supervisor(t, p), syscall.SIGKILL))
		assert.Equal(t, 125, p.ExitCode())
		assert.Contains(t, p.Stderr(), "lost")
		assert.Equal(t, 2, strings.Count(p.Stdout(), "started"), "no program is started twice")
		gone(t)
	})
	// The side of such a run is in the process of the command.
	t.Run("the command and its supervisor", func(t *testing.T) {
		p := started(t)
		ours := []int{p.Cmd.Process.Pid, supervisor(t, p)}
		for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} { // so that neither sees the end of the other
			for _, pid := range ours {
				require.NoError(t, syscall.Kill(pid, signal))
			}
		}
		gone(t)
	})
}

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

// Processes on other hosts do not have the shell's environment, but the variables that -x names.
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

// As with mpirun, the first task reads a stdin that is not a terminal.
func TestStdin(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	const program = ` -- bash -c 'echo $RANK:$(cat)'`
	for _, c := range []struct {
		name, script, want string
	}{
		{"a pipe", "printf 'a\nb\n' | %s run -n 2" + program, "0:a b 1:"},
		{"a file, of which the shell has read a part", "printf 'x\na\nb\n' > in; { read x; %s run -n 2" + program + "; } < in", "0:a b 1:"},
		{"none", "echo a | %s run -n 2 --stdin none" + program, "0: 1:"},
		{"another task", "echo a | %s run -n 2 --stdin worker-1" + program, "0: 1:a"},
		{"the spec", `printf 'command: [bash, -c, "echo $RANK:$(cat)"]\ntasks: [{type: worker}]' | %s run -`, "0:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := harness.Start(t, t.TempDir(), harness.Env(l.home), "bash", "-c", fmt.Sprintf(c.script, harness.Clusterrun(t)))
			assert.Zero(t, p.ExitCode(), p.Stderr())
			got := map[string]bool{}
			for line := range strings.Lines(p.Stdout()) {
				_, text, _ := strings.Cut(line, "]:")
				got[strings.TrimSpace(text)] = true
			}
			for _, rank := range strings.SplitAfter(strings.ReplaceAll(c.want, " 1:", "\n1:"), "\n") {
				assert.Contains(t, got, strings.TrimSpace(rank))
			}
		})
	}
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
