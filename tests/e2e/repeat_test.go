package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A run is shown, repeated, compared, and exported to a file that tar opens.
func TestRepeat(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
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
	c := must.JSON[runrecord.Comparison](t, cli(1, "diff", "--json", first, second))
	what := map[string]bool{}
	for _, d := range c.Differences {
		what[d.In+" "+d.What] = true
	}
	for _, want := range []string{"spec env.LEVEL"} {
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

// An ended run shows which code it ran.
func TestARunKnowsItsOrigin(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "train.py")
	write := func(text string) { require.NoError(t, os.WriteFile(program, []byte(text), 0o600)) }
	write("rate = 1\nprint(rate)\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	cli := func(want int, args ...string) string {
		code, stdout, stderr := l.run(args...)
		require.Equal(t, want, code, stdout+stderr)
		return stdout
	}
	run := func(id string) {
		for range 20 { // a start does not wait for git on a busy machine
			cli(0, "run", "--id", id, "--dir", dir, "--", "python3", "train.py")
			if !strings.Contains(cli(0, "show", id), "git took longer") {
				return
			}
			cli(0, "rm", "--yes", id)
		}
		require.FailNow(t, "git took longer each time")
	}
	run("one")
	write("rate = 2\nprint(rate)\n")
	run("two")
	cli(0, "run", "--id", "three", "--dir", dir, "--set", "record_source=false", "--", "python3", "train.py")

	assert.Contains(t, cli(1, "diff", "one", "two"), "source:\n  train.py\n")
	assert.Contains(t, cli(0, "show", "two"), "train.py (changed, ")
	assert.NotContains(t, cli(0, "show", "three"), "\nsource:\n")
	of := must.JSON[runrecord.Account](t, cli(0, "show", "--json", "one"))
	require.NotNil(t, of.Source)
	assert.Len(t, of.Source.Commit, 40)
}
