package worker

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process that was stopped by a signal is reported as suspended, unlike a process that runs or
// that was not started.
func TestSuspended(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	var w HostWorker
	assert.Nil(t, w.Suspended())
	w.process.Store(cmd.Process)
	assert.Nil(t, w.Suspended())
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	var s syscall.WaitStatus
	_, err := syscall.Wait4(cmd.Process.Pid, &s, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	assert.Equal(t, cmd.Process, w.Suspended())
}
