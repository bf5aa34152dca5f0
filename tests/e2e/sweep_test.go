package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sweep on this machine prefixes each trial's output with its number, reports which failed, and
// exits with 1. The trials share a copy of a directory.
func TestRunArray(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	job := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(job, "says"), []byte("more\n"), 0o600))
	code, stdout, stderr := l.run("run", "--id", "hp", "--ship", job, "--array", "lr=1e-3,'a b' seed=0..1", "--",
		"sh", "-c", `echo "$CLUSTERRUN_PARAM_LR {seed} $CLUSTERRUN_SWEEP"; cat says; touch used; echo "{\"loss\": $CLUSTERRUN_TRIAL}" > $CLUSTERRUN_RESULT_FILE; [ {trial} != 2 ]`)
	assert.Equal(t, 1, code, stderr)
	lines := strings.SplitAfter(stdout, "\n")
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(a[:min(len(a), 3)], b[:min(len(b), 3)]) })
	assert.Equal(t, "[0]: 1e-3 0 hp\n[0]: more\n[1]: 1e-3 1 hp\n[1]: more\n[2]: a b 0 hp\n[2]: more\n[3]: a b 1 hp\n[3]: more\n", strings.Join(lines, ""))
	assert.Contains(t, stderr, "trial 2 (lr=a b seed=0) failed: Subprocess worker-0 exited with exit code 1\n")
	assert.Contains(t, stderr, "sweep hp failed (exit code 1): 1 of 4 trials failed (2), 3 succeeded\n")

	assert.NoFileExists(t, filepath.Join(job, "used"))

	code, stdout, stderr = l.run("status", "--csv", "--best", "loss:max", "hp")
	require.Zero(t, code, stderr)
	rows := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, rows, 4, stdout)
	assert.Equal(t, "trial,state,exit_code,seconds,lr,seed,value.loss", rows[0])
	assert.True(t, strings.HasPrefix(rows[1], "3,succeeded,0,") && strings.HasSuffix(rows[1], ",a b,1,3"), rows[1])
	code, stdout, stderr = l.run("status", "hp.3")
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "$CLUSTERRUN_PARAM_LR 1 ", "its command has its own parameters")
	code, stdout, stderr = l.run("list", "--json")
	require.Zero(t, code, stderr)
	assert.Equal(t, 1, strings.Count(stdout, `"run_id"`), stdout)
}
