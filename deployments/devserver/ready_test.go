package devserver

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadyFileComesWithTheServerAndGoesWithIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	before := time.Now()
	p := start(t, "--ready-file", path)

	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	doc, err := os.ReadFile(path)
	require.NoError(t, err)
	var r Ready
	require.NoError(t, json.Unmarshal(doc, &r))
	assert.Equal(t, p.ready, r, "line and file say the same")
	assert.Equal(t, p.cmd.Process.Pid, r.PID)
	assert.Equal(t, "default", r.Namespace)
	assert.Regexp(t, `^127\.0\.0\.1:\d+$`, r.Address)
	assert.Empty(t, r.UI, "headless")
	assert.NotEmpty(t, r.Server)
	assert.WithinRange(t, r.Started, before, time.Now())
	p.client()

	p.signal(syscall.SIGTERM)
	assert.Equal(t, ExitOK, p.await())
	assert.False(t, exists(path))
	assert.Equal(t, "clusterrun-devserver: stopped: signal: terminated\n", p.stderr.String(),
		"a stop is quiet, although the services find each other gone")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestStaleReadyFileIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	p := start(t, "--ready-file", path)
	p.kill()
	require.True(t, exists(path), "nobody could remove it")

	p = start(t, "--ready-file", path)
	doc, err := os.ReadFile(path)
	require.NoError(t, err)
	var r Ready
	require.NoError(t, json.Unmarshal(doc, &r))
	assert.Equal(t, p.cmd.Process.Pid, r.PID)
}

func TestReadyFileOfAnotherServerIsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	p := start(t, "--ready-file", path)
	require.NoError(t, os.WriteFile(path, []byte(`{"pid": 1}`), 0o600))
	p.signal(syscall.SIGINT)
	assert.Equal(t, ExitOK, p.await())
	assert.True(t, exists(path))
}

func TestReadyFileThatCannotBeWrittenFailsTheStart(t *testing.T) {
	says := refused(t, ExitFailure, "--port=0", "--headless", "--ready-file", filepath.Join(t.TempDir(), "missing", "ready.json"))
	assert.Contains(t, says, "--ready-file")
	assert.Contains(t, says, "create the directory")
}

func TestReadyMeansThatTheWebUIAnswers(t *testing.T) {
	p := startCommand(t, command("--json", "--port=0", "--ui-port=0"))
	for _, path := range []string{"/", "/api/v1/namespaces/default/workflows"} {
		resp, err := http.Get(p.ready.UI + path)
		require.NoError(t, err)
		resp.Body.Close()
		assert.Equal(t, http.StatusOK, resp.StatusCode, path)
	}
}

func TestIPv6(t *testing.T) {
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		t.Skip("this machine has no IPv6")
	}
	p := startCommand(t, command("--json", "--ip=::1", "--port=0", "--ui-port=0"))
	assert.Regexp(t, `^\[::1\]:\d+$`, p.ready.Address)
	p.client()
	resp, err := http.Get(p.ready.UI)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
}
