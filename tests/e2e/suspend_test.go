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
)

// Ctrl-Z stops only the command: the tasks of its run still meet at a barrier, and end.
func TestARunIsSuspended(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	p := l.start("run", "-n", "2", "--env", "CR="+harness.Clusterrun(t), "--barriers", "server", "--", "bash", "-c",
		`touch up-$RANK; until [ -e go ]; do sleep 0.05; done; "$CR" task barrier x && touch passed-$RANK`)
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
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	return strings.Contains(string(stat), ") T ")
}
