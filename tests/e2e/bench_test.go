package e2e

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

func TestInterruptedBenchLeavesNothing(t *testing.T) {
	home := t.TempDir()
	p := harness.Start(t, home, harness.Env(home, "TMPDIR="+home), harness.Clusterrun(t), "bench")
	harness.Eventually(t, "it measures", func() bool {
		pipes, err := filepath.Glob(filepath.Join(home, "clusterrun-bench-*", "copies-*"))
		require.NoError(t, err)
		runs, err := filepath.Glob(filepath.Join(home, "clusterrun-bench-*", "state", "runs", "*"))
		require.NoError(t, err)
		return len(pipes)+len(runs) > 0
	})
	p.Kill(syscall.SIGINT)
	harness.Eventually(t, "it ends", p.Exited)
	assert.Equal(t, 130, p.ExitCode(), p.Stderr())
	assert.Contains(t, p.Stderr(), "interrupted; nothing is left behind")
	assert.Empty(t, p.Stdout())
	assert.Empty(t, harness.Alive("TMPDIR="+home))
	left, err := filepath.Glob(filepath.Join(home, "clusterrun-bench-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
