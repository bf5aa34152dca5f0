package supervisor

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/output"
	"github.com/clusterrun/clusterrun/activities/system/pty"
)

// The end of an output that goes to the owner is kept in a file.
func TestTheEndOfTheOwnersOutputIsKept(t *testing.T) {
	dir := t.TempDir()
	h := newHost(t, func(r *role) { r.Owner = dir })
	begin := func(task, script string) Command {
		return h.begin(task, script, func(c *Command) {
			c.StdoutEnd, c.StderrEnd = c.Stdout, c.Stderr
			c.Stdout, c.Stderr = OwnersOutput, OwnersOutput
		})
	}
	little := begin("little", "echo to stdout >/dev/stdout; echo FATAL >/dev/stderr; exit 3")
	require.Equal(t, 3, h.wait("little", 0).Code)
	assert.Equal(t, "to stdout\n", content(t, little.StdoutEnd))
	assert.Equal(t, "FATAL\n", content(t, little.StderrEnd))

	const last = 100_000
	much := begin("much", fmt.Sprintf("seq %d", last))
	require.Zero(t, h.wait("much", 0).Code)
	assert.True(t, content(t, dir, "out") == "to stdout\n"+numbers(last), "the owner has all of it")
	assert.NoFileExists(t, much.StderrEnd, "there was none")
	note, rest, _ := strings.Cut(content(t, much.StdoutEnd), "\n")
	assert.Equal(t, "clusterrun: this output was not redirected to a file; its last 64 KiB follow", note)
	assert.True(t, strings.HasSuffix(numbers(last), "\n"+rest), "whole lines")
	assert.Greater(t, len(rest), output.KeptEnd-10)
}

// If the owner's stdout and stderr are the same, they keep their order, and lines of different
// tasks are not mixed, even if a program writes them in pieces.
func TestOneOutputOfTheOwner(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out"), nil, 0o600))
	require.NoError(t, os.Link(filepath.Join(dir, "out"), filepath.Join(dir, "err")))
	h := newHost(t, func(r *role) { r.Owner = dir })
	const tasks, lines = 4, 200
	var ends []string
	for i := range tasks {
		c := h.begin(fmt.Sprint("t", i), fmt.Sprintf("for i in $(seq %d); do echo %d out $i; echo %d err $i >&2; done", lines, i, i), func(c *Command) {
			c.StdoutEnd, c.StderrEnd = c.Stdout, c.Stderr
			c.Stdout, c.Stderr = OwnersOutput, OwnersOutput
		})
		ends = append(ends, c.StderrEnd)
	}
	for i := range tasks {
		require.Zero(t, h.wait(fmt.Sprint("t", i), 0).Code)
	}
	all := content(t, dir, "out")
	for i := range tasks {
		var want, got strings.Builder
		for n := range lines {
			fmt.Fprintf(&want, "%d out %d\n%d err %d\n", i, n+1, i, n+1)
		}
		for line := range strings.Lines(all) {
			if strings.HasPrefix(line, fmt.Sprint(i, " ")) {
				got.WriteString(line)
			}
		}
		assert.Equal(t, want.String(), got.String())
		assert.Equal(t, want.String(), content(t, ends[i]))
	}
}

// A task whose output goes to the owner's terminal has a terminal of the same size, and the end
// of what it writes is kept.
func TestTheEndOfWhatGoesToATerminalIsKept(t *testing.T) {
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	modes, err := pty.Modes(slave)
	require.NoError(t, err)
	require.NoError(t, pty.SetModes(slave, pty.Raw(modes)))
	require.NoError(t, pty.SetSize(master, 33, 77))
	dir := t.TempDir()
	for _, name := range []string{"out", "err"} {
		require.NoError(t, os.Symlink(slave.Name(), filepath.Join(dir, name)))
	}
	h := newHost(t, func(r *role) { r.Owner = dir })
	const last = 20_000 // more than a terminal has room for
	want := "33 77\n" + numbers(last) + "FATAL\n"
	shown := make(chan string)
	go func() {
		text := make([]byte, len(want))
		n, _ := io.ReadFull(master, text)
		shown <- string(text[:n])
	}()
	c := h.begin("t", fmt.Sprintf("test -t 1 && test -t 2 && stty size <&1; seq %d; echo FATAL >/dev/stderr; exit 3", last), func(c *Command) {
		c.StdoutEnd, c.StderrEnd = c.Stdout, c.Stderr
		c.Stdout, c.Stderr = OwnersOutput, OwnersOutput
	})
	require.Equal(t, 3, h.wait("t", 0).Code)
	assert.True(t, <-shown == want, "the terminal shows all of it")
	assert.True(t, strings.HasSuffix(content(t, c.StderrEnd), "\n19999\n20000\nFATAL\n"))
}
