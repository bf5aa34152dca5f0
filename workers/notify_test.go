package workers

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestServiceSocket(t *testing.T) {
	for name, address := range map[string]string{
		"a path":   filepath.Join(t.TempDir(), "a socket"),
		"abstract": "@" + filepath.Join(t.TempDir(), "socket"),
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
			require.NoError(t, err)
			defer l.Close()
			require.NoError(t, l.SetReadDeadline(time.Now().Add(time.Minute)))
			require.NoError(t, sendService(address, serviceStopping))
			require.NoError(t, sendService(address, serviceReady))
			message := make([]byte, 100)
			n, err := l.Read(message)
			require.NoError(t, err)
			assert.Equal(t, "STOPPING=1", string(message[:n]))
			n, err = l.Read(message)
			require.NoError(t, err)
			assert.Equal(t, "READY=1", string(message[:n]))
		})
	}
}

// Without systemd nothing is sent, and if its socket is gone the host worker continues.
func TestNoServiceSocket(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	t.Setenv("NOTIFY_SOCKET", "")
	tellService(zap.New(core), serviceReady)
	assert.Zero(t, logged.Len())
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	tellService(zap.New(core), serviceReady)
	assert.Equal(t, 1, logged.FilterMessage("systemd cannot be notified").Len())
}
