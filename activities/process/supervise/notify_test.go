package supervise

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestServiceSocket(t *testing.T) {
	for name, address := range map[string]string{
		"a path":   filepath.Join(t.TempDir(), "a socket"),
		"abstract": "@" + filepath.Join(t.TempDir(), "socket"),
	} {
		t.Run(name, func(t *testing.T) {
			l := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"}))(t)
			defer l.Close()
			require.NoError(t, l.SetReadDeadline(time.Now().Add(time.Minute)))
			require.NoError(t, sendService(address, serviceStopping))
			require.NoError(t, sendService(address, serviceReady))
			message := make([]byte, 100)
			n := must.Get(l.Read(message))(t)
			assert.Equal(t, "STOPPING=1", string(message[:n]))
			n = must.Get(l.Read(message))(t)
			assert.Equal(t, "READY=1", string(message[:n]))
		})
	}
}

// Without systemd nothing is sent, and without its socket the host worker continues.
func TestNoServiceSocket(t *testing.T) {
	var logged strings.Builder
	log := slog.New(slog.NewTextHandler(&logged, nil))
	t.Setenv("NOTIFY_SOCKET", "")
	tellService(log, serviceReady)
	assert.Empty(t, logged.String())
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	tellService(log, serviceReady)
	assert.Contains(t, logged.String(), "could not notify systemd")
}
