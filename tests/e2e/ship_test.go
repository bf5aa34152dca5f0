package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// job returns a directory with a program, its data, and files that must not be shipped.
func job(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "job")
	for name, content := range map[string]string{
		"run.sh":     "#!/bin/bash\necho $(cat data/greeting) from $CLUSTERRUN_HOST in $PWD; echo mine >> written; ls -A | tr '\\n' ' '; echo\n",
		".gitignore": "*.ckpt\n", "model.ckpt": "", "data/greeting": "hello", ".git/HEAD": "", "data/big": "",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o700))
	require.NoError(t, os.Symlink("data/greeting", filepath.Join(dir, "link")))
	return dir
}

// shippedOn returns the runs' directories on a host.
func shippedOn(t *testing.T, w *harness.Worker) []string {
	t.Helper()
	dirs := must.Get(filepath.Glob(filepath.Join(w.State, "worker", "shipped", "runs", "*", "*[0-9a-f]")))(t)
	return dirs
}

// The run is submitted while there is only one host, and its directory is removed. The second host
// gets the files from the first.
func TestShipWithTheSubmitterGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := filepath.Join(f.dir, "logs")
	serve := []string{"--listen", "127.0.0.1", "--slots", "1"}
	a := f.StartWorker(t, append([]string{"--host-name", "host-b"}, serve...)...)
	f.worker.Kill(syscall.SIGTERM)
	f.worker.ExitCode()
	harness.Eventually(t, "it is alone", func() bool { return len(f.hosts()) == 1 })
	dir := job(t)
	stdout, stderr := f.Succeeds(t, "submit", "--json", "--ship", dir, "--exclude", "/data/big", "--log-dir", logs, "--hosts", "2", "-n", "2", "--", "./run.sh")
	assert.Contains(t, stderr, "shipping ")
	assert.Contains(t, stderr, " (4 files) to host host-b")
	var run struct {
		ID      string       `json:"run_id"`
		Archive spec.Archive `json:"archive"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &run))
	assert.Equal(t, 4, run.Archive.Files)
	require.NoError(t, os.RemoveAll(dir))
	stdout = f.OK(t, "status", run.ID)
	assert.Contains(t, stdout, "it ships ")
	assert.Contains(t, stdout, " in 4 files, SHA-256 "+run.Archive.Digest)

	b := f.StartWorker(t, append([]string{"--host-name", "host-c"}, serve...)...)
	f.OK(t, "wait", run.ID)
	stdout = f.OK(t, "logs", run.ID)
	for host, w := range map[string]*harness.Worker{"host-b": a, "host-c": b} {
		dirs := shippedOn(t, w)
		require.Len(t, dirs, 1, host)
		assert.Contains(t, stdout, "hello from "+host+" in "+dirs[0]+"\n")
		info := must.Get(os.Stat(dirs[0]))(t)
		assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		assert.Equal(t, "mine\n", readFile(t, filepath.Join(dirs[0], "written")), "each host has its own")
	}
	assert.Equal(t, 2, strings.Count(stdout, " .gitignore data link run.sh written"))

	require.NoError(t, os.RemoveAll(logs))
	harness.Eventually(t, "the directories are gone with the logs", func() bool {
		return len(shippedOn(t, a)) == 0 && len(shippedOn(t, b)) == 0
	})
}
