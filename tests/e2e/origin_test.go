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
)

// A run that has ended tells which code it ran with which packages, and how much it used, even if
// it was short.
func TestARunKnowsItsOrigin(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
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
	cli(0, "run", "--id", "three", "--dir", dir, "--record-source=false", "--", "python3", "train.py")

	assert.Contains(t, cli(1, "diff", "one", "two"), "these two differ in: train.py (+1 −1)\n")
	assert.Contains(t, cli(0, "show", "--patch", "two"), "-rate = 1\n+rate = 2\n")
	assert.Empty(t, cli(0, "show", "--patch", "three"))
	var of record.Account
	require.NoError(t, json.Unmarshal([]byte(cli(0, "show", "--json", "one")), &of))
	require.NotNil(t, of.Source)
	assert.Len(t, of.Source.Commit, 40)
	require.Len(t, of.Software, 1)
	assert.NotEmpty(t, of.Software[0].Versions["kernel"])
	require.NotNil(t, of.Software[0].Python)
	var usage struct{ Tasks []record.UsageHistory }
	require.NoError(t, json.Unmarshal([]byte(cli(0, "status", "--usage", "--history", "--json", "one")), &usage))
	require.Len(t, usage.Tasks, 1)
	assert.NotEmpty(t, usage.Tasks[0].Points)
}
