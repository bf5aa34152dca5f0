package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// Prune removes what ended runs have left, here and on the server, and nothing of a living run.
func TestPrune(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	program := []string{"-n", "2", "--env", l.mark, "--env", "BIN=" + harness.Clusterrun(t)}
	living := l.start(append(append([]string{"run", "--id", "lives"}, program...), "--", "sh", "-c", "echo up; exec sleep 1000")...)
	code, _, stderr := l.run(append(append([]string{"run", "--id", "past"}, program...), "--", "sh", "-c", "$BIN task barrier met")...)
	require.Zero(t, code, stderr)
	code, _, stderr = l.run("run", "--id", "failed", "--", "false")
	require.Equal(t, 1, code, stderr)
	harness.Eventually(t, "the run lives", func() bool { return strings.Count(living.Stdout(), "up") == 2 })
	logs := filepath.Join(l.state(), "logs")
	code, stdout, stderr := l.run("du", "--json")
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, `"held"`)

	code, _, stderr = l.run("rm", "lives")
	assert.Equal(t, 125, code)
	assert.Contains(t, stderr, "run lives has not ended; `clusterrun stop lives` ends it")
	code, stdout, _ = l.run("prune", "--older-than", "0s", "--keep-failed", "--dry-run")
	assert.Zero(t, code)
	assert.Contains(t, stdout, "past ")
	code, pruned, stderr := l.run("prune", "--older-than", "0s", "--keep-failed", "--yes")
	assert.Zero(t, code, stderr)
	assert.Equal(t, stdout, pruned)
	assert.NoDirExists(t, filepath.Join(logs, "past"))
	assert.DirExists(t, filepath.Join(logs, "failed"))
	assert.DirExists(t, filepath.Join(logs, "lives"))
	harness.Eventually(t, "the server forgets the run", func() bool {
		_, _, stderr := l.run("status", "past")
		return strings.Contains(stderr, "no run \"past\"")
	})
	code, _, stderr = l.run("rm", "failed")
	assert.Zero(t, code, stderr)
	code, _, stderr = l.run("stop", "--wait", "lives")
	assert.Zero(t, code, stderr)
	living.ExitCode()
	code, stdout, stderr = l.run("rm", "lives", "past")
	assert.Equal(t, 125, code)
	assert.Contains(t, stdout, "removed: lives")
	assert.Contains(t, stderr, "no run \"past\"")
	harness.Eventually(t, "the server forgets all", func() bool {
		_, stdout, _ := l.run("list", "--json")
		return stdout == "[]\n"
	})
}
