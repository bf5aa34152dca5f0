package tasklog

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/pty"
)

// openPTY opens a real terminal, and returns both its sides.
func openPTY(t *testing.T, width, height int) (shower, tty *os.File) {
	t.Helper()
	shower, tty, err := pty.Open()
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	t.Cleanup(func() { shower.Close(); tty.Close() })
	require.NoError(t, pty.SetSize(shower, height, width))
	return shower, tty
}

// A file that is a terminal is recognized, with its height, and both outputs are recognized
// as the same terminal.
func TestARealTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	shower, tty := openPTY(t, 40, 6)
	again, err := os.OpenFile(tty.Name(), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	c := NewConsole(tty, again, ConsoleOptions{Prefix: workers})
	assert.True(t, c.out.place == c.err.place && c.err.place.live)
	assert.Equal(t, 3, c.err.place.maxRows())

	shown := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(shower) // until no process has the terminal open
		shown <- b
	}()
	c.SetStatus("a status line that is longer than forty columns")
	for rank := range 5 {
		c.Deliver(Chunk{Stream: Stream{Rank: rank, Stderr: true}, Data: []byte("\r" + strings.Repeat("#", 50)), Start: true})
		c.Deliver(Chunk{Stream: Stream{Rank: rank}, Data: []byte("\x1b[31mred\x1b[H\n"), Start: true})
	}
	c.SetStatus("last")
	for rank := range 5 {
		c.Deliver(Chunk{Stream: Stream{Rank: rank, Stderr: true}, Data: []byte("\rdone\n")})
	}
	require.NoError(t, c.Close())
	require.NoError(t, again.Close())
	require.NoError(t, tty.Close())

	term := newTerminal(40, 6)
	_, _ = term.Write([]byte(strings.ReplaceAll(string(<-shown), "\r\n", "\n")))
	assert.Empty(t, term.unknown)
	assert.Equal(t, []string{
		"[worker-0]:    red", "[worker-1]:    red", "[worker-2]:    red", "[worker-3]:    red", "[worker-4]:    red",
		"[worker-0]:    done", "[worker-1]:    done", "[worker-2]:    done", "[worker-3]:    done", "[worker-4]:    done",
	}, term.text())

	t.Setenv("TERM", "dumb")
	assert.False(t, IsTerminal(again))
}
