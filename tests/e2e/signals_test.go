package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// runWith starts a run with grandchildren in separate sessions and additional environment
// variables, and waits until they are up.
func (l *local) runWith(env []string, argv ...string) *harness.Process {
	l.t.Helper()
	argv = append(argv, harness.Clusterrun(l.t), "run", "--json", "--env", l.mark, "-n", "2", "--", "bash", "-c", "grep SigIgn /proc/self/status; "+withGrandchild)
	p := harness.Start(l.t, l.home, harness.Env(l.home, env...), argv...)
	harness.Eventually(l.t, "the tasks run", func() bool { return countSleeps(l.tasks()) == 4 })
	return p
}

// Only signals in the list stop the run (TE-32, TE-35, SEED-80).
func TestSignalsToHandle(t *testing.T) {
	t.Parallel()
	const variable = "TORCHELASTIC_SIGNALS_TO_HANDLE="
	l := withSharedServer(t)
	gone := func(t *testing.T) {
		t.Helper()
		harness.Eventually(t, "no process is left", func() bool { return len(l.tasks()) == 0 })
	}

	t.Run("a list", func(t *testing.T) {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2} {
			p := l.runWith([]string{variable + "SIGTERM, SIGUSR1,SIGUSR2"})
			p.Kill(signal)
			assert.Equal(t, 128+int(signal), p.ExitCode(), p.Stderr())
			gone(t)
			// TE-39: the signal is named.
			name := spec.SignalName(int(signal))
			assert.Contains(t, p.Stderr(), "got "+name)
			r := must.JSON[spec.RunResult](t, p.Stdout())
			assert.Equal(t, spec.VerdictCancelled, r.Verdict)
			assert.Contains(t, r.Message, fmt.Sprintf("process %d) got %s", p.Cmd.Process.Pid, name))
		}
	})
}

// A command ignores the signals that its parent ignored; its tasks do not.
func TestIgnoredSignals(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	maskOf := func(t *testing.T, status string) (mask uint64) {
		t.Helper()
		_, err := fmt.Sscanf(after(status, "SigIgn:"), "%x", &mask)
		require.NoError(t, err, status)
		return mask
	}
	ignoredBy := func(t *testing.T, pid int) uint64 {
		t.Helper()
		b := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t)
		return maskOf(t, string(b))
	}
	bit := func(s syscall.Signal) uint64 { return 1 << (s - 1) }

	for name, c := range map[string]struct {
		argv    []string
		ignored []syscall.Signal
	}{
		"nohup":      {[]string{"nohup"}, []syscall.Signal{syscall.SIGHUP}},
		"background": {[]string{"sh", "-c", `trap "" INT QUIT; exec "$@"`, "sh"}, []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}},
	} {
		t.Run(name, func(t *testing.T) {
			p := l.runWith(nil, c.argv...)
			harness.Eventually(t, "both have said what they ignore", func() bool { return strings.Count(p.Stderr(), "SigIgn:") == 2 })
			for _, s := range c.ignored {
				assert.Zero(t, maskOf(t, p.Stderr())&bit(s), "a task does not ignore %s", s)
				assert.NotZero(t, ignoredBy(t, p.Cmd.Process.Pid)&bit(s), "%s stays ignored", s)
				p.Kill(s)
			}
			p.Kill(syscall.SIGTERM)
			assert.Equal(t, 143, p.ExitCode(), "only this one counted: %s", p.Stderr())
			harness.Eventually(t, "no process is left", func() bool { return len(l.tasks()) == 0 })
		})
	}
}

// SIGUSR1 and SIGUSR2 do not stop a run: its processes receive them, each once.
func TestUserSignalsArePassedOn(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	script := harness.Napping("trap 'echo one' USR1; trap 'echo two; exit' USR2; echo up; while :; do nap; done")
	for name, args := range map[string][]string{
		"run":      {"run", "--log-prefix", "", "-n", "2", "--", "bash", "-c", script},
		"torchrun": {"torchrun", "--nproc-per-node", "2", "--no-python", "bash", "-c", script},
	} {
		t.Run(name, func(t *testing.T) {
			p := l.start(args...)
			said := func(word string) func() bool {
				return func() bool { return strings.Count(p.Stdout(), word+"\n") == 2 }
			}
			harness.Eventually(t, "the tasks run", said("up"))
			p.Kill(syscall.SIGUSR1)
			harness.Eventually(t, "they got the first", said("one"))
			p.Kill(syscall.SIGUSR2)
			assert.Zero(t, p.ExitCode(), p.Stderr())
			assert.Equal(t, 6, strings.Count(p.Stdout(), "\n"), p.Stdout())
		})
	}
}

// Ctrl-Z suspends only the command: the run's tasks still meet at a barrier, and exit.
func TestARunIsSuspended(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	p := l.start("run", "-n", "2", "--env", "CR="+harness.Clusterrun(t), "--set", "barriers=server", "--", "bash", "-c",
		harness.Napping(`touch up-$RANK; until [ -e go ]; do nap; done; "$CR" task barrier x && touch passed-$RANK`))
	there := func(name string) func() bool {
		return func() bool {
			for rank := range 2 {
				if _, err := os.Stat(filepath.Join(p.Dir, fmt.Sprintf("%s-%d", name, rank))); err != nil {
					return false
				}
			}
			return true
		}
	}
	harness.Eventually(t, "the tasks run", there("up"))
	pid := p.Cmd.Process.Pid
	require.NoError(t, syscall.Kill(pid, syscall.SIGTSTP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	harness.Eventually(t, "the command is stopped", func() bool { return isStopped(t, pid) })
	require.NoError(t, os.WriteFile(filepath.Join(p.Dir, "go"), nil, 0o600))
	harness.Eventually(t, "the tasks have passed", there("passed"))
	assert.True(t, isStopped(t, pid))
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	assert.Zero(t, p.ExitCode(), p.Stderr())
	assert.Contains(t, p.Stderr(), "succeeded")
}

func isStopped(t *testing.T, pid int) bool {
	t.Helper()
	stat := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))(t)
	return strings.Contains(string(stat), ") T ")
}
