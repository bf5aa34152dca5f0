package tasklog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onTerminal is a console on one terminal for both outputs.
type onTerminal struct {
	*bed
	*terminal
}

func newOnTerminal(width, height int) *onTerminal {
	t := &onTerminal{terminal: newTerminal(width, height), bed: &bed{open: map[Stream]bool{}}}
	t.bed.Console = NewConsole(t.terminal, t.terminal, ConsoleOptions{Prefix: workers, Terminal: always})
	return t
}

func (t *onTerminal) rowsOf(test *testing.T) []string {
	test.Helper()
	assert.Empty(test, t.unknown)
	return t.terminal.text()
}

// A line that leaves a color on does not color the next one.
func TestColoursEndWithTheirLine(t *testing.T) {
	c := newOnTerminal(80, 20)
	c.say(0, false, "\x1b[31mred\n")
	c.say(1, false, "\x1b[32mun")
	c.Println("ours")
	c.say(1, false, "finished\n")
	c.SetStatus("status")
	require.Equal(t, []string{"[worker-0]:    red", "[worker-1]:    un", "ours", "[worker-1]:    finished", "status"}, c.rowsOf(t))
	for i, want := range []string{"[worker-0]:    {31}red", "[worker-1]:    {32}un", "ours", "[worker-1]:    finished", "status"} {
		assert.Equal(t, want, c.pens(i))
	}
	require.NoError(t, c.Close())
}

func TestCursorSequencesTearNothing(t *testing.T) {
	c := newOnTerminal(80, 20)
	c.SetStatus("status")
	c.say(0, false, "one\n")
	c.say(1, false, "\x1b[A\x1b[2Kover it\x1b[1;1H\n\x1b[2J\x1b[?1049hscreen\n\x1bc\n")
	c.say(0, false, "two\n")
	assert.Equal(t, []string{"[worker-0]:    one", "[worker-1]:    over it", "[worker-1]:    screen", "[worker-1]:", "[worker-0]:    two", "status"}, c.rowsOf(t))
}

func TestBytesStayAsTheyAreWithoutATerminal(t *testing.T) {
	b := newBed(ConsoleOptions{})
	text := "\x1b[31mred\x1b[A\xff\xc2\x0e\u009b\x00 unfinished\n\x1b]0;title\nwindows\r\n\r\n"
	for _, c := range strings.SplitAfter(text, "\n") {
		if c != "" {
			b.say(0, false, c)
		}
	}
	require.NoError(t, b.Close())
	assert.Equal(t, text, b.out.String())
}

// Only the last state of a bar is shown, as a terminal would.
func TestFinishedBars(t *testing.T) {
	for in, want := range map[string]string{
		"\r 10%\r 50%\r100%\n":          "100%",
		"10%\r100%\r\n":                 "100%",
		"\r100%\r\r\r\n":                "100%",
		"\rone\r\x1b[0m\n":              "one",
		"\r100%\r     \rdone\n":         "done",
		"a\r" + strings.Repeat("b", 90): strings.Repeat("b", 90),
		"\rbar\x1b[A\rabove\n":          "above",
		"\b\b\b\r 5/10\n":               " 5/10",
		"\rcut \r":                      "cut ",
	} {
		plain, c := newBed(ConsoleOptions{}), newOnTerminal(200, 9)
		plain.say(0, false, in)
		c.say(0, false, in)
		require.NoError(t, plain.Close())
		require.NoError(t, c.Close())
		assert.Equal(t, want+"\n", plain.out.String(), "%q", in)
		assert.Equal(t, []string{"[worker-0]:    " + strings.TrimRight(want, " ")}, c.rowsOf(t), "%q", in)
	}
}

// A bar that is drawn for long comes in pieces, and each piece is a line.
func TestBarsInPieces(t *testing.T) {
	b := newBed(ConsoleOptions{Prefix: workers})
	b.say(0, true, "Epoch 1:")
	b.say(0, true, "\r 10%\r 20%")
	b.say(1, true, "line\n")
	b.say(0, true, "\r 30%")
	b.say(0, true, "\r    \r")
	b.say(0, true, "\nnext\n")
	b.say(2, true, "\r100%\r\n")
	require.NoError(t, b.Close())
	assert.Equal(t, "[worker-0]:    Epoch 1:\n[worker-0]:     20%\n[worker-1]:    line\n[worker-0]:     30%\n[worker-0]:    next\n[worker-2]:    100%\n", b.err.String())
}

func TestStdoutAndStderrOnDifferentTerminals(t *testing.T) {
	out, errs := newTerminal(80, 10), newTerminal(80, 10)
	c := NewConsole(out, errs, ConsoleOptions{Prefix: workers, Terminal: always})
	c.SetStatus("status")
	c.Deliver(Chunk{Data: []byte("\rout"), Start: true})
	c.Deliver(Chunk{Stream: Stream{Stderr: true}, Data: []byte("\rerr"), Start: true})
	assert.Equal(t, []string{"[worker-0]:    out"}, out.text())
	assert.Equal(t, []string{"[worker-0]:    err", "status"}, errs.text())
	require.NoError(t, c.Close())
}

func TestTimestamps(t *testing.T) {
	b := newBed(ConsoleOptions{Prefix: workers, Timestamps: true})
	b.now = func() time.Time { return time.Date(2024, 1, 2, 3, 4, 5, 67e6, time.Local) }
	b.say(0, false, "one\ntwo\n")
	b.say(0, false, "unfin")
	b.say(0, false, "ished\n\rbar\n")
	b.say(1, false, "other\n")
	want := ""
	for _, l := range []string{"[worker-0]:    one", "[worker-0]:    two", "[worker-0]:    unfinished", "[worker-0]:    bar", "[worker-1]:    other"} {
		want += "03:04:05.067 " + l + "\n"
	}
	assert.Equal(t, want, b.out.String())
}

// Colors, bars, wrapped lines and the status line never tear each other in any order of writes.
func TestNothingIsTornOnATerminal(t *testing.T) {
	c := newOnTerminal(60, 12)
	const tasks, lines = 6, 150
	var wg sync.WaitGroup
	for rank := range tasks {
		for _, stderr := range []bool{false, true} {
			wg.Go(func() {
				for text := ""; len(text) < lines; text += "x" {
					i := len(text)
					line := fmt.Sprintf("\r\x1b[%dm%d/%d\x1b[A\r\x1b[2J\x1b[%dm<%t %d>\n", 31+rank, i, lines, 31+rank, stderr, i)
					cut := 1 + rand.IntN(3)
					c.Deliver(Chunk{Stream: Stream{Rank: rank, Stderr: stderr}, Data: []byte(strings.Repeat(line, cut)), Start: true})
				}
			})
		}
		wg.Go(func() {
			for i := range 50 {
				c.SetStatus(fmt.Sprintf("status %d of %d, which is longer than the terminal is wide", i, rank))
			}
		})
	}
	wg.Wait()
	require.NoError(t, c.Close())
	assert.Empty(t, c.unknown)
	got := c.terminal.text()
	assert.GreaterOrEqual(t, len(got), 2*tasks*lines)
	for i := range got {
		var rank int
		_, err := fmt.Sscanf(got[i], "[worker-%d]:", &rank)
		require.NoError(t, err)
		assert.Regexp(t, fmt.Sprintf(`^\[worker-%d\]:    \{%d\}<(true|false) \d+>$`, rank, 31+rank), c.pens(i))
	}
}

// The follower holds back an unfinished bar for longer than another unfinished line.
func TestTheFollowerHoldsBars(t *testing.T) {
	f := &Follower{opts: FollowOptions{Hold: time.Minute}}
	for text, minutes := range map[string]int{"text": 1, "\r 10%": 10} {
		held := time.Duration(minutes) * time.Minute
		assert.False(t, f.heldLongEnough(&stream{held: time.Now().Add(-held + 30*time.Second)}, []byte(text), false), text)
		assert.True(t, f.heldLongEnough(&stream{held: time.Now().Add(-held)}, []byte(text), false), text)
	}
}
