package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// A sweep on this machine shows the output of each trial with its number, says which failed, and
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

// The part of the host worker that executes the sweep is killed while trials run: each trial is
// started once, and none is lost. Those that were stopped or failed are started again as part of
// the sweep.
func TestSweepSurvivesItsHostWorker(t *testing.T) {
	takesLong(t)
	t.Parallel()
	l := newLocal(t)
	dir := t.TempDir()
	code, _, stderr := l.run("submit", "--id", "hp", "--array", "n=0..5", "--at-most", "2", "--", "sh", "-c",
		fmt.Sprintf(`echo {n} >> %[1]s/starts; [ {n} != 4 ] || [ -e %[1]s/mended ] || exit 3; while [ ! -e %[1]s/go ]; do sleep 0.1; done`, dir))
	require.Zero(t, code, stderr)
	starts := func() (n []string) {
		text, _ := os.ReadFile(filepath.Join(dir, "starts"))
		n = strings.Fields(string(text))
		slices.Sort(n)
		return n
	}
	harness.Eventually(t, "two run", func() bool { return len(starts()) == 2 })
	code, _, stderr = l.run("stop", "hp.6")
	assert.Equal(t, 2, code, stderr)
	assert.Contains(t, stderr, "hp.6: sweep hp has no such trial; its trials are 0 to 5")
	code, _, stderr = l.run("stacks", "hp")
	assert.Equal(t, 2, code, stderr)
	assert.Contains(t, stderr, "hp is a sweep, which has no tasks of its own; name a trial, such as hp.0")
	code, _, stderr = l.run("stop", "hp.5")
	require.Zero(t, code, stderr)
	sides := slices.DeleteFunc(harness.Children(l.backgroundWorker()), func(pid int) bool { return !strings.Contains(harness.Cmdline(pid), " side") })
	require.Len(t, sides, 1)
	require.NoError(t, syscall.Kill(sides[0], syscall.SIGKILL))
	l.ended(sides[0])
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	code, _, stderr = l.run("wait", "hp")
	assert.Equal(t, 1, code, stderr)
	assert.Contains(t, stderr, "sweep hp failed (exit code 1): 1 of 6 trials failed (4), 4 succeeded, 1 not started")
	assert.Equal(t, []string{"0", "1", "2", "3", "4"}, starts())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600))
	code, _, stderr = l.run("rerun", "--failed", "hp")
	require.Zero(t, code, stderr)
	code, _, stderr = l.run("wait", "hp")
	assert.Zero(t, code, stderr)
	assert.Equal(t, []string{"0", "1", "2", "3", "4", "4", "5"}, starts())
	code, stdout, stderr := l.run("status", "--json", "hp")
	require.Zero(t, code, stderr)
	var s struct {
		Trials []struct{ State string }
		Sweep  struct{ Succeeded int }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	assert.Equal(t, 6, s.Sweep.Succeeded)
	require.Len(t, s.Trials, 6)
	for _, trial := range s.Trials {
		assert.Equal(t, "succeeded", trial.State)
	}
}
