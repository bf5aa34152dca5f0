package cli

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestInterruptsOf(t *testing.T) {
	four := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
	for value, want := range map[string][]syscall.Signal{
		"":                         four, // TE-40
		"  ":                       four,
		"SIGTERM,SIGUSR1, SIGUSR2": {syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}, // TE-41, TE-45
		"SIGUSR1,USR1":             {syscall.SIGUSR1},
	} {
		got, problems := InterruptsOf(value)
		assert.Equal(t, want, got, value)
		assert.Empty(t, problems, value)
	}
	got, problems := InterruptsOf("SIGTERM,SIGTRM,,SIGKILL,SIGCHLD") // TE-42
	assert.Equal(t, []syscall.Signal{syscall.SIGTERM}, got)
	assert.Len(t, problems, 4)
	assert.Contains(t, problems[0], `"SIGTRM" is not a signal; did you mean SIGTERM?`)
	assert.Contains(t, problems[2], `"SIGKILL" cannot be handled`)
	assert.Contains(t, problems[3], `"SIGCHLD" is used by clusterrun itself`)
}

// A broken connection to a killed server does not count as broken output.
func TestABrokenConnectionIsNoBrokenOutput(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	assert.False(t, nobodyReads(w))
	r.Close()
	assert.True(t, nobodyReads(w))

	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	assert.False(t, nobodyReads(file))

	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	socket := os.NewFile(uintptr(fds[0]), "socket")
	defer socket.Close()
	assert.False(t, nobodyReads(socket))
	require.NoError(t, unix.Close(fds[1]))
	assert.True(t, nobodyReads(socket))

	signals, stop := ListenForSignals((&App{}), []syscall.Signal{syscall.SIGUSR1})
	defer stop()
	_, err = socket.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EPIPE)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	assert.Equal(t, os.Signal(syscall.SIGUSR1), <-signals)
	assert.Empty(t, signals)
}
