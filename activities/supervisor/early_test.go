package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// newGraceful returns a host with a task that exits with 7 when it is told to end.
func newGraceful(t *testing.T, change func(*role)) *host {
	t.Helper()
	h := newUpgradable(t, change)
	h.sh("t", 0, `trap 'exit 7' TERM; echo $$ >$D/t; while :; do sleep 0.01; done`)
	h.pidIn("t")
	return h
}

// endsInGrace waits for the supervisor to end, and checks through the next one that the task
// had its grace.
func (h *host) endsInGrace() {
	h.t.Helper()
	require.NoError(h.t, h.ended())
	h.start()
	exit := h.wait("t", 0)
	assert.Equal(h.t, 7, exit.Code)
	assert.Equal(h.t, ReasonShutdown, exit.Reason)
	assert.False(h.t, exit.Lost)
}

// A program that takes over has hundreds of packages to initialize. A signal that arrives
// meanwhile neither ends it nor is lost.
func TestSignalsWhileAnotherProgramIsInitialized(t *testing.T) {
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, SignalEnd} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			hold := filepath.Join(t.TempDir(), "hold")
			require.NoError(t, os.WriteFile(hold, nil, 0o600))
			h := newGraceful(t, func(r *role) { r.Hold = hold })
			require.NoError(t, h.cmd.Process.Signal(SignalUpgrade))
			h.awaitCount("initializing ", 1)
			require.NoError(t, h.cmd.Process.Signal(sig))
			require.NoError(t, os.Remove(hold))
			h.endsInGrace()
		})
	}
}

// A request to end is heard whenever it arrives, even where each of its signals could be
// lost.
func TestARequestToEndWhileAnotherProgramTakesOver(t *testing.T) {
	for ms := range 12 {
		t.Run(fmt.Sprintf("after %d ms", ms), func(t *testing.T) {
			t.Parallel()
			h := newGraceful(t, nil)
			require.NoError(t, h.cmd.Process.Signal(SignalUpgrade))
			time.Sleep(time.Duration(ms) * time.Millisecond) // a different moment each time
			require.NoError(t, RequestEnd(h.ctx(), h.role.Dir, h.cmd.Process.Pid))
			h.endsInGrace()
		})
	}
}
