package e2e

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// A host worker is started, reloaded and stopped as its unit says. It notifies systemd that it
// is ready once its fleet has it, and again after an upgrade in place, in the same process; and
// that it stops.
func TestSystemdHearsOfAHostWorker(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t)
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	next := func() string {
		t.Helper()
		require.NoError(t, l.SetReadDeadline(time.Now().Add(time.Minute)))
		message := make([]byte, 1000)
		n, err := l.Read(message)
		require.NoError(t, err)
		return string(message[:n])
	}

	code, unit, stderr := s.CLI(t, "worker", "install", "--user", "--dry-run", "--address", s.Address, "--state-dir", filepath.Join(t.TempDir(), "state"),
		"--host-name", "host-a", "--slots", "2", "--label", "rack=r7", "--advertise", "127.0.0.1")
	require.Zero(t, code, stderr)
	// A shell takes these words as systemd does.
	call := func(key string) *harness.Process {
		t.Helper()
		_, rest, found := strings.Cut(unit, "\n"+key+"=")
		require.True(t, found, unit)
		line, _, _ := strings.Cut(rest, "\n")
		return harness.Start(t, t.TempDir(), harness.Env(t.TempDir(), "NOTIFY_SOCKET="+socket), "bash", "-c", "exec "+line)
	}

	w := call("ExecStart")
	require.Equal(t, "READY=1", next())
	code, out, stderr := s.CLI(t, "host", "list")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "host-a", "it is registered by then")
	assert.Contains(t, out, "rack=r7")

	reload := call("ExecReload")
	require.Zero(t, reload.ExitCode(), reload.Stderr())
	require.Equal(t, "READY=1", next())
	assert.False(t, w.Exited(), "it is the same process")

	stop := call("ExecStop")
	require.Equal(t, "STOPPING=1", next())
	require.Zero(t, w.ExitCode(), w.Stderr())
	require.Zero(t, stop.ExitCode(), stop.Stderr())
}
