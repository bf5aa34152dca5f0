package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/account"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A run is shown, run again, compared, and read from a file where there is no server.
func TestRepeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Name: "iris", Dir: f.dir, Tasks: []spec.TaskGroup{group("worker", 2, "echo level $LEVEL of $RANK; exit 3")},
		OnFailure: spec.OnFailureContinue, Env: spec.Env{"LEVEL": {Value: "1"}, "MY_TOKEN": {Value: "hush"}}})
	harness.Result(t, run)
	first := run.GetID()
	cli := func(code int, args ...string) string {
		t.Helper()
		got, stdout, stderr := f.CLI(t, args...)
		require.Equal(t, code, got, "%v\n%s\n%s", args, stdout, stderr)
		return stdout
	}
	shown := cli(0, "show", first)
	assert.Contains(t, shown, "failed")
	assert.Contains(t, shown, "running ")
	assert.Contains(t, shown, "    LEVEL=1\n")
	assert.NotContains(t, shown, "hush")
	file := filepath.Join(t.TempDir(), "again.yaml")
	require.NoError(t, os.WriteFile(file, []byte(cli(0, "show", "--spec", first)), 0o600))
	cli(0, "validate", file)

	second := strings.TrimSpace(cli(0, "rerun", "-x", "LEVEL=2", first))
	require.NotEqual(t, first, second)
	cli(3, "wait", second)
	cli(0, "diff", first, first)
	var c account.Comparison
	require.NoError(t, json.Unmarshal([]byte(cli(1, "diff", "--json", first, second)), &c))
	what := map[string]bool{}
	for _, d := range c.Differences {
		what[d.In+" "+d.What] = true
	}
	for _, want := range []string{"spec env.LEVEL", "environment LEVEL", "last lines stdout"} {
		assert.True(t, what[want], "%s in %v", want, c.Differences)
	}
	assert.NotContains(t, what, "spec command")
	cli(2, "diff", first, "nosuch")
	cli(2, "diff", first)

	dir := t.TempDir()
	exported := filepath.Join(dir, "run.tar.gz")
	cli(0, "export", "--logs", "-o", exported, first)
	cli(2, "export", "-o", exported, first)
	there := func(code int, args ...string) (string, string) {
		t.Helper()
		p := harness.Start(t, dir, harness.Env(dir), append([]string{harness.Clusterrun(t)}, args...)...)
		require.Equal(t, code, p.ExitCode(), "%v\n%s\n%s", args, p.Stdout(), p.Stderr())
		return p.Stdout(), p.Stderr()
	}
	there(2, "import", file)
	there(0, "import", exported)
	stdout, stderr := there(0, "status", first)
	assert.Contains(t, stdout, "run "+first+": failed")
	assert.Contains(t, stderr, "run "+first+" is an imported one")
	stdout, _ = there(0, "logs", first, "worker-1")
	assert.Contains(t, stdout, "level 1 of 1")
	there(0, "diff", first, first)
	there(3, "wait", first)
	stdout, _ = there(0, "show", "--spec", first)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(written), stdout)
	_, stderr = there(125, "barriers", first)
	assert.Contains(t, stderr, "imported")

	// It is listed, counted and removed as the others are.
	var listed []starter.Summary
	stdout, _ = there(0, "list", "--json", "--failed", "--name", "iris*")
	require.NoError(t, json.Unmarshal([]byte(stdout), &listed))
	require.Len(t, listed, 1)
	assert.True(t, listed[0].Imported)
	assert.Equal(t, "worker=2", listed[0].Tasks)
	assert.Equal(t, spec.CauseOrigin, listed[0].Cause)
	assert.Equal(t, 3, listed[0].ExitCode)
	stdout, stderr = there(0, "list")
	assert.Contains(t, stdout, first+" *")
	assert.Contains(t, stderr, "imported: as it was when it was exported")
	stdout, _ = there(0, "list", "--json", "--open")
	assert.JSONEq(t, "[]", stdout)
	stdout, _ = there(0, "du", "--json")
	var used struct {
		Imported int64
		Runs     []struct{ State string }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &used))
	assert.Positive(t, used.Imported)
	require.Len(t, used.Runs, 1)
	assert.Equal(t, "imported", used.Runs[0].State)
	stdout, _ = there(0, "prune", "--older-than", "1h", "--yes")
	assert.Empty(t, stdout, "it is not old enough")
	stdout, _ = there(0, "prune", "--older-than", "0s", "--keep-failed", "--yes")
	assert.Empty(t, stdout, "it has failed")
	stdout, _ = there(0, "prune", "--older-than", "0s", "--dry-run")
	assert.Contains(t, stdout, first+" (imported)")
	there(0, "prune", "--older-than", "0s", "--yes")
	there(125, "status", first)
	there(0, "import", exported)
	require.DirExists(t, filepath.Join(dir, ".local", "state", "clusterrun", "imported", first))
	there(0, "rm", first)
	there(125, "status", first)
	left, err := filepath.Glob(filepath.Join(dir, ".local", "state", "clusterrun", "imported", "*"))
	require.NoError(t, err)
	assert.Empty(t, left)

	// Where the server knows it, it is listed once.
	state := filepath.Join(dir, "state")
	cli(0, "import", "--state-dir", state, exported)
	require.DirExists(t, filepath.Join(state, "imported", first))
	listed = nil
	require.NoError(t, json.Unmarshal([]byte(cli(0, "list", "--json", "--name", first, "--state-dir", state)), &listed))
	require.Len(t, listed, 1)
	assert.False(t, listed[0].Imported)
}
