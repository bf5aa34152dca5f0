package activities

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// written returns process n of a task that has written this output.
func written(t *testing.T, root, task string, n int, stdout, stderr string) supervisor.Process {
	t.Helper()
	dir := filepath.Join(root, fmt.Sprintf("attempt_%d", n), task)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{tasklog.StdoutFile: stdout, tasklog.StderrFile: stderr} {
		if text != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	return supervisor.Process{Key: runkey.Task{Task: task}, Number: n, LogDir: dir}
}

func planOf(types ...string) *plan {
	p := &plan{Spec: (&spec.RunSpec{}).WithDefaults()}
	for rank, typ := range types {
		p.Cluster.Members = append(p.Cluster.Members, hostapi.Member{Type: typ, Rank: rank, LocalRank: rank})
	}
	return p
}

// SEED-05, MPR-05: the lines have the prefix of their task, and include the lines of all its
// attempts.
func TestLastOutput_MPR05_SEED05(t *testing.T) {
	dir := t.TempDir()
	out := lastOutput(planOf("chief", "worker"), []supervisor.Process{
		written(t, dir, "chief-0", 0, "a\nb", "warning\n"),
		written(t, dir, "worker-0", 0, "", "failed\n"), // stdout was not redirected
		written(t, dir, "worker-0", 1, "well\n", ""),
		{Key: runkey.Task{Task: "worker-0"}, Number: 2, LogDir: filepath.Join(dir, "missing")},
	})
	assert.Equal(t, []string{
		"[chief-0]:     a", "[chief-0]:     b", "[chief-0]:     warning",
		"[worker-0]:    failed", "[worker-0]:    well",
	}, out)
}

// A run that keeps no files has no output to return. A file in the host worker's own
// directory is not its output.
func TestLastOutputWithoutFiles_SEED76(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(tasklog.StdoutFile, []byte("not ours\n"), 0o600))
	assert.Empty(t, lastOutput(planOf("worker"), []supervisor.Process{{Key: runkey.Task{Task: "worker-0"}}}))
	assert.Empty(t, lastOutput(planOf("worker"), nil))
}

func size(lines []string) (n int) {
	for _, l := range lines {
		n += len(l)
	}
	return n
}

// If there is too much output, the end of each task's output has priority.
func TestLastOutputIsBounded(t *testing.T) {
	dir := t.TempDir()
	line := strings.Repeat("x", 999) + "\n"
	var processes []supervisor.Process
	for n := range 20 {
		processes = append(processes, written(t, dir, "chief-0", n, strings.Repeat(line, 99)+fmt.Sprintf("end of %d\n", n), ""))
	}
	processes = append(processes, written(t, dir, "worker-0", 0, strings.Repeat(line, 99)+"end of worker\n", "small\n"))
	out := lastOutput(planOf("chief", "worker"), processes)
	assert.LessOrEqual(t, size(out), maxOutput)
	assert.Greater(t, size(out), maxOutput/2)
	for line, want := range map[string]bool{
		"[chief-0]:     end of 19": true, "[chief-0]:     end of 18": true, "[chief-0]:     end of 0": false,
		"[worker-0]:    end of worker": true, "[worker-0]:    small": true,
	} {
		assert.Equal(t, want, slices.Contains(out, line), line)
	}
	assert.Less(t, strings.Index(strings.Join(out, "\n"), "end of 18"), strings.Index(strings.Join(out, "\n"), "end of 19"))

	// Prefixes count towards the limit: here a thousand tasks wrote many short lines.
	processes = processes[:0]
	var types []string
	for i := range 1000 {
		types = append(types, fmt.Sprintf("t%d", i))
		processes = append(processes, written(t, dir, fmt.Sprintf("t%d-0", i), 0, strings.Repeat("1\n", 99)+"last\n", ""))
	}
	out = lastOutput(planOf(types...), processes)
	assert.LessOrEqual(t, size(out), maxOutput)
	for _, i := range []int{0, 500, 999} {
		last := fmt.Sprintf("%-14s last", fmt.Sprintf("[t%d-0]:", i))
		assert.True(t, slices.Contains(out, last), last)
	}
}
