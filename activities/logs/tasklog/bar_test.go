package tasklog

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
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

// tick draws what has changed, as the timer does.
func (t *onTerminal) tick() { t.showBars(t.bed.Console.err.place) }

func (t *onTerminal) rowsOf(test *testing.T) []string {
	test.Helper()
	assert.Empty(test, t.unknown)
	return t.terminal.text()
}

// A line that leaves a color on ends with a reset, and its task's next line continues in the color.
// Other tasks are not colored.
func TestColoursStayWithTheirTask(t *testing.T) {
	c := newOnTerminal(80, 20)
	c.say(0, false, "\x1b[31mred\n")
	c.say(1, false, "plain\n")
	c.Println("ours")
	c.say(0, true, "stderr is another stream\n")
	c.say(0, false, "still red\n\x1b[1mand bold\x1b[0m over\nplain again\n")
	c.say(1, false, "\x1b]8;;http://x/\x1b\\link\nstill\x1b]8;;\x1b\\ no more\n")
	c.SetStatus("status")
	require.Equal(t, []string{
		"[worker-0]:    red", "[worker-1]:    plain", "ours", "[worker-0]:    stderr is another stream",
		"[worker-0]:    still red", "[worker-0]:    and bold over", "[worker-0]:    plain again",
		"[worker-1]:    link", "[worker-1]:    still no more", "status",
	}, c.rowsOf(t))
	for i, want := range map[int]string{
		0: "[worker-0]:    {31}red", 1: "[worker-1]:    plain", 2: "ours", 3: "[worker-0]:    stderr is another stream",
		4: "[worker-0]:    {31}still red", 6: "[worker-0]:    plain again",
		7: "[worker-1]:    {http://x/}link", 8: "[worker-1]:    {http://x/}still{} no more", 9: "status",
	} {
		assert.Equal(t, want, c.pens(i))
	}
	assert.Empty(t, c.Console.out.place.lines, "nothing is kept of streams that have nothing on")
	require.NoError(t, c.Close())
}

func TestColoursOfUnfinishedLines(t *testing.T) {
	c := newOnTerminal(80, 20)
	c.say(0, false, "\x1b[32mgre")
	c.say(0, false, "en")
	c.say(1, false, "other\n")
	c.say(0, false, " on\n")
	assert.Equal(t, []string{"[worker-0]:    green", "[worker-1]:    other", "[worker-0]:     on"}, c.rowsOf(t))
	assert.Equal(t, "[worker-0]:    {32}green", c.pens(0))
	assert.Equal(t, "[worker-1]:    other", c.pens(1))
	assert.Equal(t, "[worker-0]:    {32} on", c.pens(2))
	// Another process starts without attributes.
	c.Deliver(Chunk{Stream: Stream{Attempt: 1}, Data: []byte("new\n"), Start: true})
	assert.Equal(t, "[worker-0]:    new", c.pens(3))
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
	text := "\x1b[31mred\x1b[A\xff\xc2\x0e\u009b\x00 unfinished\n\x1b]0;title\nwindows\r\n\r\n\x1b[0m\r\r\n"
	for _, c := range strings.SplitAfter(text, "\n") {
		if c != "" {
			b.say(0, false, c)
		}
	}
	b.say(1, false, "in pieces\r")
	b.say(1, false, "\n")
	b.say(1, false, "begun ")
	b.say(1, false, "\r")
	b.say(1, false, "\r\n")
	require.NoError(t, b.Close())
	assert.Equal(t, text+"in pieces\r\nbegun \r\r\n", b.out.String())
}

// The output is a terminal's final content.
func TestFinishedBars(t *testing.T) {
	for in, want := range map[string]string{
		"\r 10%\r 50%\r100%\n":          "100%",
		"10%\r100%\r\n":                 "100%",
		"100%\r\r\r\n":                  "100%",
		"\rone\r\x1b[0m\n":              "one",
		"\r100%\r     \rdone\n":         "done",
		"a\r" + strings.Repeat("b", 90): strings.Repeat("b", 90),
		"\rbar\x1b[A\rabove\n":          "above",
		"\b\b\b\r 5/10\n":               " 5/10",
	} {
		plain := newBed(ConsoleOptions{})
		c := newOnTerminal(200, 9)
		for i := range len(in) {
			plain.say(0, false, in[i:i+1])
			c.say(0, false, in[i:i+1])
			if i == 0 && in[0] != '\r' { // the text does not start like a bar
				break
			}
		}
		if in[0] != '\r' {
			plain, c = newBed(ConsoleOptions{}), newOnTerminal(200, 9)
			plain.say(0, false, in)
			c.say(0, false, in)
		}
		require.NoError(t, plain.Close())
		require.NoError(t, c.Close())
		assert.Equal(t, want, strings.TrimRight(SplitLines(plain.out.String())[0], "\r"), "%q", in)
		assert.Equal(t, []string{"[worker-0]:    " + want}, c.rowsOf(t), "%q", in)
		assert.Empty(t, c.Console.out.place.lines)
		assert.Empty(t, c.bed.Console.err.place.bars())
	}
}

// While it is drawn, a bar is a line now and then; when it is complete, its last state is the line.
func TestBarsOnATerminal(t *testing.T) {
	c := newOnTerminal(80, 20)
	c.bed.Console.err.place.every = time.Hour
	c.SetStatus("2 running")
	c.say(1, true, "\r 10%")
	c.say(0, true, "\r\x1b[32m 20%\x1b[0m")
	before := c.writes
	for i := range 1000 {
		c.say(1, true, fmt.Sprintf("\r%d", i))
	}
	assert.Equal(t, before, c.writes, "no change is a write")
	c.tick()
	assert.Equal(t, []string{"[worker-0]:     20%", "[worker-1]:    999", "2 running"}, c.rowsOf(t))
	assert.Equal(t, "[worker-0]:    {32} 20%", c.pens(0))
	c.tick()
	assert.Len(t, c.rowsOf(t), 3, "each state is shown once")
	c.say(1, true, "\r100%\nnext\n")
	c.say(0, true, "\r    \r")
	c.tick()
	assert.Equal(t, []string{"[worker-1]:    100%", "[worker-1]:    next", "2 running"}, c.rowsOf(t)[2:], "a bar that is wiped has no state")
	c.say(0, true, "\r 90%")
	c.End(1)
	c.say(2, true, "\rof the first process")
	c.say(3, true, "\rof a task that ends")
	c.End(3)
	c.Deliver(Chunk{Stream: Stream{Rank: 2, Attempt: 1, Stderr: true}, Data: []byte("again\n"), Start: true})
	require.NoError(t, c.Close())
	assert.Equal(t, []string{"[worker-3]:    of a task that ends", "[worker-2]:    of the first process", "[worker-2]:    again", "[worker-0]:     90%"}, c.rowsOf(t)[4:])
	assert.Empty(t, c.bed.Console.err.place.lines)
}

func TestTheTimerShowsBars(t *testing.T) {
	c := newOnTerminal(80, 20)
	c.bed.Console.err.place.every = time.Millisecond
	c.say(0, true, "\rlast")
	eventually(t, "the timer", func() bool { return len(c.terminal.text()) > 0 })
	assert.Equal(t, []string{"[worker-0]:    last"}, c.rowsOf(t))
	require.NoError(t, c.Close())
}

// Bars of several rows, drawn by moving the cursor, as tqdm does.
func TestBarsOfSeveralRows(t *testing.T) {
	c := newOnTerminal(80, 60)
	c.SetStatus("status")
	for i := range 5 {
		c.say(0, true, fmt.Sprintf("\router %d\n\rinner %d\x1b[A", i, i))
		c.say(1, false, fmt.Sprintf("line %d\n", i))
	}
	require.NoError(t, c.Close())
	for _, l := range c.rowsOf(t) {
		assert.Regexp(t, `^\[worker-0\]:    (outer|inner) \d$|^\[worker-1\]:    line \d$`, l)
	}
}

func TestBarsWithoutATerminal(t *testing.T) {
	b := newBed(ConsoleOptions{Prefix: workers})
	p := b.Console.err.place
	p.every = time.Hour
	tick := func() { b.showBars(p) }
	b.say(0, true, "\r 10%")
	b.say(0, true, "\r 20%")
	b.say(1, true, "line\n")
	assert.Equal(t, "[worker-1]:    line\n", b.err.String())
	assert.NotNil(t, p.timer)
	tick()
	tick()
	assert.Equal(t, "[worker-1]:    line\n[worker-0]:     20%\n", b.err.String(), "once")
	b.err.Reset()
	b.say(0, true, "\r 30%")
	b.say(1, true, "unfinished")
	tick()
	assert.Equal(t, "[worker-1]:    unfinished\n[worker-0]:     30%\n", b.err.String())
	b.err.Reset()
	b.say(0, true, "\r100%\n")
	b.say(2, true, "\r 50%")
	b.say(3, true, "\r 60%")
	tick()
	b.say(3, true, "\r 70%")
	require.NoError(t, b.Close())
	assert.Equal(t, "[worker-0]:    100%\n[worker-2]:     50%\n[worker-3]:     60%\n[worker-3]:     70%\n", b.err.String(), "at the end what was not shown")
	assert.Empty(t, b.out.String())
	tick()
}

func TestStdoutAndStderrOnDifferentTerminals(t *testing.T) {
	out, errs := newTerminal(80, 10), newTerminal(80, 10)
	c := NewConsole(out, errs, ConsoleOptions{Prefix: workers, Terminal: always})
	c.SetStatus("status")
	c.Deliver(Chunk{Data: []byte("\rout"), Start: true})
	c.Deliver(Chunk{Stream: Stream{Stderr: true}, Data: []byte("\rerr"), Start: true})
	c.showBars(c.err.place)
	c.showBars(c.out.place)
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
	c.bed.Console.err.place.every = time.Hour
	const tasks, lines = 6, 150
	var wg sync.WaitGroup
	for rank := range tasks {
		for _, stderr := range []bool{false, true} {
			wg.Go(func() {
				open := false
				deliver := func(text string) {
					for text != "" {
						n := 1 + rand.IntN(len(text))
						c.Deliver(Chunk{Stream: Stream{Rank: rank, Stderr: stderr}, Data: []byte(text[:n]), Start: !open})
						open = text[n-1] != '\n'
						text = text[n:]
					}
				}
				for i := range lines {
					// The text is a bar from the first byte on, so that it stays one line.
					deliver(fmt.Sprintf("\r\x1b[%dm%d/%d\x1b[A\r\x1b[2J<%t %d>\n", 31+rank, i, lines, stderr, i))
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
	var want []string
	for rank := range tasks {
		for i := range lines {
			for _, stderr := range []bool{false, true} {
				want = append(want, fmt.Sprintf("[worker-%d]:    <%t %d>", rank, stderr, i))
			}
		}
	}
	got := c.terminal.text()
	require.ElementsMatch(t, want, got)
	for i := range got {
		var rank int
		_, err := fmt.Sscanf(got[i], "[worker-%d]:", &rank)
		require.NoError(t, err)
		prefix, text := got[i][:15], got[i][15:]
		assert.Equal(t, fmt.Sprintf("%s{%d}%s", prefix, 31+rank, text), c.pens(i))
	}
}

func TestTheFollowerHandsBarsOnSooner(t *testing.T) {
	var o FollowOptions
	o.Hold = 3 * time.Second
	run := t.TempDir()
	dir := makeProcess(t, run, 0, 0)
	var c collector
	f := Follow(run, c.add, o)
	appendTo(t, dir, StdoutFile, "no bar")
	appendTo(t, dir, StderrFile, "\r 10%")
	eventually(t, "the bar", func() bool { return c.text(Stream{Stderr: true}) != "" })
	assert.Empty(t, c.text(Stream{}), "it is held for ten times as long")
	stop(t, f)
	assert.Equal(t, "no bar", c.text(Stream{}))
	assert.Empty(t, c.problems())
}

// Text that is not a bar is passed on in order at any length: it is never overwritten in pieces
// larger than maxBar.
func TestALongLineWithCarriageReturns(t *testing.T) {
	for name, o := range map[string]ConsoleOptions{"terminal": {Terminal: always}, "none": {}} {
		t.Run(name, func(t *testing.T) {
			var n int
			hash := sha256.New()
			w := writerFunc(func(b []byte) (int, error) { n += len(b); return hash.Write(b) })
			c := NewConsole(w, io.Discard, o)
			want := sha256.New()
			block := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
			_, _ = want.Write([]byte("begin"))
			c.Deliver(Chunk{Data: []byte("begin"), Start: true})
			c.Deliver(Chunk{Data: []byte("\r")})
			_, _ = want.Write([]byte("\n"))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 1 << 8 {
				_, _ = want.Write(block)
				c.Deliver(Chunk{Data: block})
			}
			runtime.ReadMemStats(&after)
			c.Deliver(Chunk{Data: []byte("\rend\n")})
			require.NoError(t, c.Close())
			_, _ = want.Write([]byte("\nend\n"))
			assert.Equal(t, want.Sum(nil), hash.Sum(nil))
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
		})
	}
}

func TestAGiantBarNeedsLittleMemory(t *testing.T) {
	c := NewConsole(io.Discard, io.Discard, ConsoleOptions{Terminal: always})
	states := bytes.Repeat([]byte("\r"+strings.Repeat("#", 100)), 600)
	c.Deliver(Chunk{Data: states, Start: true})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		c.Deliver(Chunk{Data: states})
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
	assert.LessOrEqual(t, cap(c.err.place.bars()[0].bar.current), 2*maxBar)
	require.NoError(t, c.Close())
}

func TestIsTerminalIsAskedForFiles(t *testing.T) {
	t.Setenv("TERM", "xterm")
	f := must.Get(os.Open(os.DevNull))(t)
	defer f.Close()
	c := NewConsole(f, &bytes.Buffer{}, ConsoleOptions{})
	assert.False(t, c.out.place.terminal || c.err.place.terminal)
}
