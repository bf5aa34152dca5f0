package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A run is shown, run again, compared, and exported to a file that tar opens.
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
	var c record.Comparison
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
	require.NoError(t, exec.Command("tar", "-xzf", exported, "-C", dir).Run())
	unpacked := filepath.Join(dir, first)
	cli(0, "validate", filepath.Join(unpacked, "spec.yaml"))
	assert.Equal(t, readFile(t, file), readFile(t, filepath.Join(unpacked, "spec.yaml")))
	assert.Equal(t, "level 1 of 1\n", readFile(t, filepath.Join(unpacked, "logs", "attempt_0", "1", "stdout.log")))
}
