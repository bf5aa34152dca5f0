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

// Only signals in the list stop a run, which names the signal (TE-32, TE-35, TE-39, SEED-80). A
// command ignores the signals that its parent ignored; its tasks do not.
func TestSignalsToHandle(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	mask := func(status string) (mask uint64) {
		_, err := fmt.Sscanf(after(status, "SigIgn:"), "%x", &mask)
		require.NoError(t, err, status)
		return mask
	}
	for by, c := range map[syscall.Signal]struct {
		argv    []string
		ignored []syscall.Signal
	}{
		syscall.SIGTERM: {nil, nil},
		syscall.SIGUSR1: {[]string{"nohup"}, []syscall.Signal{syscall.SIGHUP}},
		syscall.SIGUSR2: {[]string{"sh", "-c", `trap "" INT QUIT; exec "$@"`, "sh"}, []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}},
	} {
		name := spec.SignalName(int(by))
		t.Run(name, func(t *testing.T) {
			argv := append(c.argv, harness.Clusterrun(t), "run", "--json", "--env", l.mark, "-n", "2", "--", "bash", "-c", "grep SigIgn /proc/self/status; "+withGrandchild)
			p := harness.Start(t, l.home, harness.Env(l.home, "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM, SIGUSR1,SIGUSR2"), argv...)
			harness.Eventually(t, "the tasks run", func() bool { return countSleeps(l.tasks()) == 4 && strings.Count(p.Stderr(), "SigIgn:") == 2 })
			for _, s := range c.ignored {
				bit := uint64(1) << (s - 1)
				assert.Zero(t, mask(p.Stderr())&bit, "a task does not ignore %s", s)
				assert.NotZero(t, mask(readFile(t, fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid)))&bit, "%s stays ignored", s)
				p.Kill(s)
			}
			p.Kill(by)
			assert.Equal(t, 128+int(by), p.ExitCode(), "only this one counted: %s", p.Stderr())
			harness.Eventually(t, "no process is left", func() bool { return len(l.tasks()) == 0 })
			assert.Contains(t, p.Stderr(), "got "+name)
			r := must.JSON[spec.RunResult](t, p.Stdout())
			assert.Equal(t, spec.VerdictCancelled, r.Verdict)
			assert.Contains(t, r.Message, fmt.Sprintf("process %d) got %s", p.Cmd.Process.Pid, name))
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
