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

	"github.com/clusterrun/clusterrun/starter"
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

// shippedOn returns the directories of runs on a host.
func shippedOn(t *testing.T, w *harness.Worker) []string {
	t.Helper()
	dirs := must.Get(filepath.Glob(filepath.Join(w.State, "worker", "shipped", "runs", "*", "*[0-9a-f]")))(t)
	return dirs
}

// The run is submitted while there is only one host, and its directory removed: the other
// host has the files from the first.
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

// If another host worker answers at the address of the files, the hosts do not take them from
// it, and the run reports why it waits.
func TestShipFromAnotherHostWorker(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.StartWorker(t, "--host-name", "host-b", "--listen", "127.0.0.1", "--slots", "1")
	f.worker.Kill(syscall.SIGTERM)
	f.worker.ExitCode()
	harness.Eventually(t, "it is alone", func() bool { return len(f.hosts()) == 1 })
	id := f.OK(t, "submit", "--ship", job(t), "--hosts", "2", "-n", "2", "--", "./run.sh")
	port := strings.TrimSpace(readFile(t, filepath.Join(a.State, "worker", "hostservice.port")))
	a.Kill(syscall.SIGTERM)
	require.Zero(t, a.ExitCode())
	for name, listen := range map[string]string{"host-c": "127.0.0.1:" + port, "host-d": "127.0.0.1"} {
		f.StartWorker(t, "--host-name", name, "--listen", listen, "--slots", "1")
	}
	id = strings.TrimSpace(id)
	harness.Eventually(t, "the run says why it waits", func() bool {
		s, err := starter.Get(f.client, id, "").Status(t.Context())
		return err == nil && len(s.Waiting) == 1 && strings.Contains(s.Waiting[0].Refusal, "the certificate is unknown to the run")
	})
	f.OK(t, "stop", id)
}

func TestShipIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dir := job(t)
	submit := func(args ...string) string {
		t.Helper()
		code, _, stderr := f.CLI(t, append(append([]string{"submit"}, args...), "--", "./run.sh")...)
		assert.NotZero(t, code)
		return stderr
	}
	harness.Eventually(t, "there is a host", func() bool { return len(f.hosts()) == 1 })
	assert.Contains(t, submit("--ship", dir), "none of the hosts of queue clusterrun takes the files, so the run is not started: host host-a serves no files (start its `clusterrun worker` with --listen)")
	assert.Contains(t, submit("--ship", dir, "--queue", "nobody"), `queue "nobody" has no hosts on this server`)
	assert.Contains(t, submit("--ship", dir, "--set", "ship.limit=2KiB"), "at most 2.0 KiB are shipped; exclude what the hosts do not need, or raise the limit; the largest: ")
	assert.Contains(t, submit("--ship", dir, "--set", "ship.limit=much"), `ship.limit: "much" is not a size; write it like 512GiB`)
	assert.Contains(t, submit("--ship", dir, "--dir", "../elsewhere"), `--dir: "../elsewhere" is outside the directory that the run ships`)
	assert.Contains(t, submit("--exclude", "x"), "ship.dir: missing; name the directory to ship")
	assert.Contains(t, submit("--ship", dir+"/none"), "--ship "+dir+"/none: no such directory")
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "users")))
	assert.Contains(t, submit("--ship", dir), "--ship: the symbolic link users -> /etc/passwd leaves the directory")

	stdout, stderr := f.Succeeds(t, "validate", "--plan", "--ship", dir, "--exclude", "users", "--", "./run.sh")
	assert.Contains(t, stdout, "host-a: worker-0")
	assert.Contains(t, stderr, "it would ship ")
	assert.Contains(t, stderr, " in 5 files of "+dir)
}

func TestShipHere(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	dir := job(t)
	stdout, stderr := l.succeeds("run", "--ship", dir, "-n", "2", "--", "./run.sh")
	assert.Equal(t, 2, strings.Count(stdout, "hello from "))
	assert.NotContains(t, stdout, "model.ckpt")
	assert.Contains(t, stderr, "in a copy of "+dir)
	assert.NoFileExists(t, filepath.Join(dir, "written"))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "sub.sh"), []byte("echo here is $PWD\n"), 0o600))
	assert.Regexp(t, `here is /.*/shipped/runs/.*/data`, l.ok("run", "--ship", dir, "--dir", "data", "--", "bash", "sub.sh"))
	assert.Contains(t, l.fails(127, "run", "--ship", dir, "--", "./missing.sh"), "./missing.sh on host")
}

func TestShipBySSH(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 2)
	dir := job(t)
	stdout, stderr := h.succeeds("run", "--launch-agent", h.Agent, "--ship", dir, "-H", "a,b,localhost", "--", "./run.sh")
	for _, host := range h.Hosts {
		assert.Contains(t, stdout, "hello from "+host.Name+" in "+host.State)
		assert.Contains(t, stderr, "to host "+host.Name)
	}
	assert.Equal(t, 3, strings.Count(stdout, "hello from "))
	h.gone()
}
