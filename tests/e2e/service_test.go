package e2e

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// systemd hears that a host worker is ready once its fleet has it, and again after an upgrade in
// place, in the same process; and that it stops.
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

	w := s.StartWorkerWith(t, []string{"NOTIFY_SOCKET=" + socket})
	require.Equal(t, "READY=1", next())
	code, out, stderr := s.CLI(t, "hosts")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, w.Host, "it is registered by then")

	code, _, stderr = s.CLI(t, "worker", "upgrade", "--state-dir", w.State)
	require.Zero(t, code, stderr)
	require.Contains(t, next(), "RELOADING=1\nMONOTONIC_USEC=")
	require.Equal(t, "READY=1", next())
	assert.False(t, w.Exited(), "it is the same process")

	w.Kill(syscall.SIGTERM)
	require.Equal(t, "STOPPING=1", next())
	require.Zero(t, w.ExitCode(), w.Stderr())
}
