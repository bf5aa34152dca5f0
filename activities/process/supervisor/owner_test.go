package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// ownerIn returns an owner whose stdin, stdout and stderr are files.
func ownerIn(dir string) Owner {
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			panic(err)
		}
		return f
	}
	return Owner{Stdin: open("in"), Stdout: open("out"), Stderr: open("err")}
}

func TestOwnersDescriptors(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in"), []byte("typed\n"), 0o600))
	h := newHost(t, func(r *role) { r.Owner = dir })
	written := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.Truncate(filepath.Join(dir, name), 0))
		return string(raw)
	}
	const script = `cat; echo to stdout; echo to stderr >&2; ls -m /proc/self/fd`

	// SEED-77: one stream goes to the owner, the other to its file.
	r := h.request("direct", 0, script)
	r.Command.Stdout = OwnersOutput
	_, err := h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	require.Zero(t, h.wait("direct", 0).Code)
	assert.Equal(t, "to stdout\n0, 1, 2, 3\n", written("out"), "stdin is /dev/null, and nothing of the owner's beside")
	raw, err := os.ReadFile(r.Command.Stderr)
	require.NoError(t, err)
	assert.Equal(t, "to stderr\n", string(raw))
	assert.Empty(t, written("err"))

	r = h.request("foreground", 0, script)
	r.Command.Foreground = true
	_, err = h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	require.Zero(t, h.wait("foreground", 0).Code)
	assert.Equal(t, "typed\nto stdout\n0, 1, 2, 3\n", written("out"))
	assert.Equal(t, "to stderr\n", written("err"))
	assert.NoFileExists(t, r.Command.Stdout)

	_, err = h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM}}})
	require.NoError(t, err)
	require.NoError(t, h.cmd.Process.Signal(os.Interrupt))
	require.NoError(t, h.ended())
	before, after := 0, 0
	_, err = fmt.Sscan(h.lastEvent("descriptors "), &before, &after)
	require.NoError(t, err)
	assert.Equal(t, before-1, after, "the lock is closed, and no copy is left")
}

func TestNoOwner(t *testing.T) {
	h := newHost(t, nil)
	r := h.request("direct", 0, "echo lost")
	r.Command.Stdout, r.Command.Stderr = OwnersOutput, OwnersOutput
	_, err := h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	assert.Zero(t, h.wait("direct", 0).Code, "as with /dev/null")

	r = h.request("foreground", 0, "true")
	r.Command.Foreground = true
	_, err = h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	e := h.wait("foreground", 0)
	assert.Equal(t, exitcode.NotExecutable, e.Code)
	assert.Contains(t, e.StartError, "no launcher has a stdin")
}
