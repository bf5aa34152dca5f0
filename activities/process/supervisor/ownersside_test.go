package supervisor

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// newOwned returns a host whose side is the test itself.
func newOwned(t *testing.T) *host {
	t.Helper()
	return newHost(t, func(r *role) { r.Lifeline, r.OwnersSide, r.Instance = true, true, NewInstance() })
}

// If the owner has died with its side, its supervisor still has processes. It starts a side
// to report how they end.
func TestTheOwnerDiesWithItsSide(t *testing.T) {
	h := newOwned(t)
	h.sh("w", 0, "exec sleep 1000")
	require.Zero(t, h.count("side "), "none but the owner's")
	require.NoError(t, h.client.Close())
	require.NoError(t, h.lifeline.Close())
	require.NoError(t, h.ended())
	require.Equal(t, 1, h.count("side "))
	require.Equal(t, 1, h.count("closing true"))
	require.Equal(t, "w -15 shutdown", h.lastEvent("exit "))
}

// The side of a living owner may end. The next side takes over its processes.
func TestTheOwnersSideEnds(t *testing.T) {
	h := newOwned(t)
	h.sh("w", 0, "exec sleep 1000")
	require.NoError(t, h.client.Close())
	h.awaitCount("side ", 1)
	h.connect()
	require.Equal(t, []string{"w"}, h.stop(int(unix.SIGTERM), patience, "w"))
	require.Equal(t, -15, h.wait("w", 0).Code)
	require.NoError(t, h.lifeline.Close())
	require.NoError(t, h.ended())
	require.Equal(t, 1, h.count("side "))
}

// A side that leaves has nothing more to report, so no other is started.
func TestTheOwnersSideLeaves(t *testing.T) {
	h := newOwned(t)
	h.sh("w", 0, "exec sleep 1000")
	require.NoError(t, h.client.Leave(h.ctx()))
	require.NoError(t, h.client.Close())
	require.NoError(t, h.lifeline.Close())
	require.NoError(t, h.ended())
	require.Zero(t, h.count("side "))
}

// An owner that has asked for everything to be recorded does not have to leave.
func TestTheOwnersSideIsCutOff(t *testing.T) {
	h := newOwned(t)
	h.sh("w", 0, "exec sleep 1000")
	line, err := json.Marshal(StopAll{Stops: Stops{Stop: Stop{Signal: int(unix.SIGTERM), Grace: patience}}, Recorded: true})
	require.NoError(t, err)
	_, err = h.lifeline.Write(append(line, '\n'))
	require.NoError(t, err)
	<-h.client.Lost()
	require.NoError(t, h.ended())
	require.Zero(t, h.count("side "))
}
