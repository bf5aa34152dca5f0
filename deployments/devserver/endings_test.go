package devserver

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSignalsAreACleanStop(t *testing.T) {
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it is, and the server inherits that
		signals = append(signals, syscall.SIGHUP)
	}
	for _, s := range signals {
		p := start(t)
		p.signal(s)
		assert.Equal(t, ExitOK, p.await(), "%s", s)
		assert.Contains(t, p.stderr.String(), "stopped: signal: "+s.String())
	}
}

func TestNobodyReadsTheOutput(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd := command("--json", "--port=0", "--headless", "--log-level=debug")
	require.NoError(t, reader.Close())
	p := startCommandTo(t, cmd, writer)
	require.NoError(t, writer.Close())
	p.signal(syscall.SIGTERM)
	assert.Equal(t, ExitOK, p.await())
}

func TestSignalDuringTheStart(t *testing.T) {
	db := testFile(t)
	ready := filepath.Join(filepath.Dir(db), "ready.json")
	cmd := command("--port=0", "--headless", "--db", db, "--ready-file", ready)
	p := &process{t: t, cmd: cmd, stderr: &syncBuffer{}, exited: make(chan struct{})}
	cmd.Stderr = p.stderr
	require.NoError(t, cmd.Start())
	go func() { defer close(p.exited); _ = cmd.Wait() }()
	t.Cleanup(p.kill)
	// The lock is the first thing that it leaves, well before it is ready; by then it
	// listens for signals.
	require.Eventually(t, func() bool { return exists(db + ".lock") }, patience, 1)
	p.signal(syscall.SIGTERM)
	assert.Equal(t, ExitOK, p.await(), "%s", p.stderr)
	assert.False(t, exists(ready))

	start(t, "--db", db)
}

func TestLifeline(t *testing.T) {
	ours, theirs, err := pipe()
	require.NoError(t, err)
	cmd := command("--json", "--port=0", "--headless", "--lifeline-fd=3")
	cmd.ExtraFiles = []*os.File{theirs}
	p := startCommand(t, cmd)
	require.NoError(t, theirs.Close())

	_, err = ours.WriteString("what is written is ignored")
	require.NoError(t, err)
	p.client()
	require.True(t, p.running())

	require.NoError(t, ours.Close())
	assert.Equal(t, ExitOK, p.await())
	assert.Contains(t, p.stderr.String(), "its owner is gone")
}

// pipe returns the owner's end, to write to, and the server's.
func pipe() (owner, server *os.File, err error) {
	server, owner, err = os.Pipe()
	return owner, server, err
}
