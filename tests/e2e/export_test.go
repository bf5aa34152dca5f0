package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// An export has the output of all hosts, whose files only they can read: bytes, files of errors
// and values, earlier attempts and processes that write nothing. A host that is gone is named.
func TestExportOfEveryHost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	serve := []string{"--listen", "127.0.0.1", "--log-dir", apart}
	f.StartWorker(t, append([]string{"--host-name", "host-b"}, serve...)...)
	c := f.StartWorker(t, append([]string{"--host-name", "host-c"}, serve...)...)
	once := 1
	run := f.start(&spec.RunSpec{OnFailure: spec.OnFailureContinue, AutoRestart: true, MaxRestarts: &once, Tasks: []spec.TaskGroup{{
		Type: "worker", Addresses: []string{"host-b", "host-c", "host-b"},
		Command: []string{"bash", "-c", `[ $RANK = 2 ] && exit; seq 50000; echo "warned in $CLUSTERRUN_RESTART_COUNT" >&2; printf 'no end'
			cd /proc/$PPID/cwd; [ $RANK = 0 ] && { head -c 20000000 /dev/zero | tr '\0' 1 > $CLUSTERRUN_RESULT_FILE; exit; }
			echo '{"message": "boom"}' > $CLUSTERRUN_ERROR_FILE; exit 3`},
	}}})
	r := f.result(run)
	require.Equal(t, spec.VerdictFailed, r.Verdict, r.Message)

	dir := t.TempDir()
	unpack := func(file string) string {
		into := t.TempDir()
		out, err := exec.Command("tar", "-xzf", file, "-C", into).CombinedOutput()
		require.NoError(t, err, string(out))
		return filepath.Join(into, run.GetID())
	}
	logOf := func(unpacked string, attempt, rank int, name string) string {
		file := filepath.Join(unpacked, "logs", fmt.Sprintf("attempt_%d/%d/%s", attempt, rank, name))
		if _, err := os.Stat(file); err != nil {
			return "there is none"
		}
		return readFile(t, file)
	}
	whole := filepath.Join(dir, "whole.tar.gz")
	// The copies are in the directory of the export file, since there is no temporary
	// directory.
	export := harness.Start(t, dir, harness.Env(dir, "TEMPORAL_ADDRESS="+f.Address, "TMPDIR="+filepath.Join(dir, "nosuch")),
		harness.Clusterrun(t), "export", "--logs", "-o", whole, run.GetID())
	require.Zero(t, export.ExitCode(), export.Stderr())
	left, err := filepath.Glob(filepath.Join(dir, ".cluster*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	unpacked := unpack(whole)
	var numbers strings.Builder
	for i := range 50000 {
		fmt.Fprintln(&numbers, i+1)
	}
	for _, p := range []struct{ attempt, rank int }{{0, 0}, {0, 1}, {1, 1}} {
		assert.Equal(t, numbers.String()+"no end", logOf(unpacked, p.attempt, p.rank, "stdout.log"))
		assert.Equal(t, fmt.Sprintf("warned in %d\n", p.attempt), logOf(unpacked, p.attempt, p.rank, "stderr.log"))
	}
	assert.JSONEq(t, `{"message": "boom"}`, logOf(unpacked, 0, 1, "error.json"))
	assert.Empty(t, logOf(unpacked, 0, 2, "stdout.log"))
	assert.Len(t, logOf(unpacked, 0, 0, "result.json"), 20_000_000, "a value of any size is whole")

	// How processes were started is in it, with the output and without.
	starts := func(file string) (starts []*tasklog.Start) {
		var of record.Account
		require.NoError(t, json.Unmarshal([]byte(readFile(t, filepath.Join(unpack(file), "account.json"))), &of))
		for _, task := range of.Tasks {
			starts = append(starts, task.Start)
		}
		return starts
	}
	bare := filepath.Join(dir, "bare.tar.gz")
	code, stdout, stderr := f.CLI(t, "export", "-o", bare, run.GetID())
	require.Zero(t, code, stderr)
	assert.Equal(t, bare+"\n", stdout)
	for _, all := range [][]*tasklog.Start{starts(whole), starts(bare)} {
		require.Len(t, all, 3)
		for rank, start := range all {
			require.NotNil(t, start, "of rank %d", rank)
			assert.Equal(t, spec.Version, start.Version)
			assert.Equal(t, fmt.Sprint(rank), *start.Set["RANK"])
			assert.Contains(t, start.Inherited, "PATH")
		}
	}
	startFile, err := filepath.Glob(filepath.Join(c.Dir, "logs", run.GetID(), "*", "attempt_1", "1", tasklog.StartFile))
	require.NoError(t, err)
	require.Len(t, startFile, 1)
	assert.Equal(t, readFile(t, startFile[0]), logOf(unpacked, 1, 1, tasklog.StartFile))

	c.Kill(syscall.SIGTERM)
	require.Zero(t, c.ExitCode())
	part := filepath.Join(dir, "part.tar.gz")
	code, stdout, stderr = f.CLI(t, "export", "--logs", "-o", part, run.GetID())
	assert.Equal(t, 125, code)
	assert.Equal(t, part+"\n", stdout, "what there is is in it")
	assert.Contains(t, stderr, "worker-1 (attempt 0), worker-1 on host-c, in "+apart)
	unpacked = unpack(part)
	assert.Equal(t, numbers.String()+"no end", logOf(unpacked, 0, 0, "stdout.log"))
	assert.Equal(t, "there is none", logOf(unpacked, 0, 1, "stdout.log"))
}
