package tasklog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func workers(rank, _ int) string {
	return defaultPrefixOf(spec.PrefixFields{Type: "worker", Index: rank})
}

func defaultPrefixOf(f spec.PrefixFields) string {
	p, err := spec.ParsePrefix(nil)
	if err != nil {
		panic(err)
	}
	return p.Format(f)
}

type bed struct {
	*Console
	out, err bytes.Buffer
	open     map[Stream]bool
}

func newBed(o ConsoleOptions) *bed {
	b := &bed{open: map[Stream]bool{}}
	b.Console = NewConsole(&b.out, &b.err, o)
	return b
}

// say delivers what a follower would deliver.
func (b *bed) say(rank int, stderr bool, text string) {
	s := Stream{Rank: rank, Stderr: stderr}
	c := Chunk{Stream: s, Data: []byte(text), Start: !b.open[s]}
	b.open[s] = !c.End()
	b.Deliver(c)
}

func TestConsoleKeepsStreamsApart(t *testing.T) {
	b := newBed(ConsoleOptions{Prefix: workers})
	b.say(0, false, "one\ntwo\n")
	b.say(1, true, "bad\xff\n\n")
	assert.Equal(t, "[worker-0]:    one\n[worker-0]:    two\n", b.out.String())
	assert.Equal(t, "[worker-1]:    bad\xff\n[worker-1]:    \n", b.err.String())
	b = newBed(ConsoleOptions{})
	b.say(0, false, "bare\n")
	assert.Equal(t, "bare\n", b.out.String())
}

func TestConsoleAsksForThePrefixOfEachAttempt(t *testing.T) {
	b := newBed(ConsoleOptions{Prefix: func(rank, attempt int) string { return fmt.Sprintf("%d#%d ", rank, attempt) }})
	b.Deliver(Chunk{Stream: Stream{Rank: 4}, Data: []byte("x\n"), Start: true})
	b.Deliver(Chunk{Stream: Stream{Rank: 4, Attempt: 1}, Data: []byte("x\n"), Start: true})
	assert.Equal(t, "4#0 x\n4#1 x\n", b.out.String())
}

func TestConsoleUnfinishedLines(t *testing.T) {
	b := newBed(ConsoleOptions{Prefix: workers})
	b.say(0, false, "load")
	b.say(0, false, "ing")
	b.say(0, true, "elsewhere\n")
	b.say(0, false, "...\nnext")
	assert.Equal(t, "[worker-0]:    loading...\n[worker-0]:    next", b.out.String(), "stderr is another place")
	b.say(1, false, "other\n")
	b.say(0, false, " goes on\n")
	assert.Equal(t, "[worker-0]:    loading...\n[worker-0]:    next\n[worker-1]:    other\n[worker-0]:     goes on\n", b.out.String())
	b.say(1, true, "last")
	require.NoError(t, b.Close())
	assert.Equal(t, "[worker-0]:    elsewhere\n[worker-1]:    last\n", b.err.String(), "the shell's prompt gets a line of its own")
}

func TestConsoleOneplaceForBoth(t *testing.T) {
	var both bytes.Buffer
	c := NewConsole(&both, &both, ConsoleOptions{Prefix: workers})
	c.Deliver(Chunk{Stream: Stream{}, Data: []byte("unfinished"), Start: true})
	c.Deliver(Chunk{Stream: Stream{Stderr: true}, Data: []byte("error\n"), Start: true})
	c.Println("ours")
	assert.Equal(t, "[worker-0]:    unfinished\n[worker-0]:    error\nours\n", both.String())

	path := filepath.Join(t.TempDir(), "both")
	f := must.Get(os.Create(path))(t)
	defer f.Close()
	again := must.Get(os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0))(t)
	defer again.Close()
	assert.True(t, samePlace(f, again), "as with 2>&1")
	assert.False(t, samePlace(f, os.Stderr))
	assert.False(t, samePlace(f, &both))
}

func TestConsoleLineLargerThanItsBuffer(t *testing.T) {
	b := newBed(ConsoleOptions{Prefix: workers})
	big := strings.Repeat("x", consoleBuffer)
	b.say(0, false, "a\n"+big+"\nb\n")
	assert.Equal(t, "[worker-0]:    a\n[worker-0]:    "+big+"\n[worker-0]:    b\n", b.out.String())
	assert.LessOrEqual(t, cap(b.Console.out.buf), consoleBuffer*5/4, "memory is bounded")
}

func always(io.Writer) bool { return true }

type failing struct{ calls int }

func (f *failing) Write([]byte) (int, error) {
	f.calls++
	return 0, errors.New("broken pipe")
}

func TestConsoleAfterAWriteError(t *testing.T) {
	var w failing
	c := NewConsole(&w, &bytes.Buffer{}, ConsoleOptions{})
	assert.NoError(t, c.Err())
	for range 3 {
		c.Deliver(Chunk{Data: []byte("x\n"), Start: true})
	}
	assert.EqualError(t, c.Err(), "broken pipe")
	assert.Equal(t, 1, w.calls)
	assert.EqualError(t, c.Close(), "broken pipe")
}

// A broken output is not written to again, and the other output continues.
func TestConsoleWithOneBrokenOutput(t *testing.T) {
	var good bytes.Buffer
	for _, broken := range []bool{false, true} { // whether stderr is the broken output
		good.Reset()
		c := NewConsole(&failing{}, &good, ConsoleOptions{Prefix: workers})
		if broken {
			c = NewConsole(&good, &failing{}, ConsoleOptions{Prefix: workers})
		}
		for _, stderr := range []bool{broken, !broken, broken, !broken} {
			c.Deliver(Chunk{Stream: Stream{Stderr: stderr}, Data: []byte("x\n"), Start: true})
		}
		require.EqualError(t, c.Close(), "broken pipe")
		assert.Equal(t, "[worker-0]:    x\n[worker-0]:    x\n", good.String())
	}
}

// unread is an output without a reader.
type unread struct{ busy, read chan struct{} }

func (u unread) Write(b []byte) (int, error) {
	close(u.busy)
	<-u.read
	return len(b), nil
}

// A writer to an output without a reader waits, but other writers do not.
func TestConsoleWithOneOutputThatNobodyReads(t *testing.T) {
	var stderr bytes.Buffer
	u := unread{make(chan struct{}), make(chan struct{})}
	c := NewConsole(u, &stderr, ConsoleOptions{Prefix: workers})
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		c.Deliver(Chunk{Data: []byte("x\n"), Start: true})
	}()
	<-u.busy
	c.Println("said")
	c.SetStatus("status")
	c.Deliver(Chunk{Stream: Stream{Stderr: true}, Data: []byte("y\n"), Start: true})
	assert.Equal(t, "said\n[worker-0]:    y\n", stderr.String())
	close(u.read)
	<-delivered
	require.NoError(t, c.Close())
}

// screen shows what a terminal would: finished lines and the last one.
type screen struct {
	mu    sync.Mutex
	lines []string
	last  string
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.NewReplacer("\x1b[?7l", "", "\x1b[?7h", "").Replace(string(b))
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\r\x1b[K"):
			s.last, text = "", text[len("\r\x1b[K"):]
		case text[0] == '\n':
			s.lines, s.last, text = append(s.lines, s.last), "", text[1:]
		default:
			s.last, text = s.last+text[:1], text[1:]
		}
	}
	return len(b), nil
}

func TestStatusLine(t *testing.T) {
	var s screen
	c := NewConsole(&s, &s, ConsoleOptions{Prefix: workers, Terminal: always})
	c.SetStatus("3 of 4 running")
	assert.Equal(t, "3 of 4 running", s.last)
	c.Deliver(Chunk{Data: []byte("a\nb\n"), Start: true})
	c.Deliver(Chunk{Stream: Stream{Stderr: true}, Data: []byte("unfin"), Start: true})
	assert.Equal(t, "3 of 4 running", s.last, "it stays the last line")
	c.SetStatus("done\x1b[2J\nreally")
	assert.Equal(t, "done [2J really", s.last, "one line, and nothing that steers the terminal")
	c.Deliver(Chunk{Stream: Stream{Stderr: true}, Data: []byte("ished\n")})
	c.SetStatus("")
	assert.Equal(t, "", s.last)
	c.SetStatus("again")
	require.NoError(t, c.Close())
	assert.Equal(t, "", s.last)
	assert.Equal(t, []string{"[worker-0]:    a", "[worker-0]:    b", "[worker-0]:    unfin", "[worker-0]:    ished"}, s.lines)
}

func TestStatusLineOfStderrAlone(t *testing.T) {
	var out bytes.Buffer
	var s screen
	c := NewConsole(&out, &s, ConsoleOptions{Prefix: workers, Terminal: func(w io.Writer) bool { return w == &s }})
	c.SetStatus("status")
	c.Deliver(Chunk{Data: []byte("data\n"), Start: true})
	c.Println("note")
	assert.Equal(t, "[worker-0]:    data\n", out.String(), "a redirected stdout has lines only")
	assert.Equal(t, []string{"note"}, s.lines)
	assert.Equal(t, "status", s.last)
}

func TestNoStatusLineWithoutTerminal(t *testing.T) {
	b := newBed(ConsoleOptions{})
	b.SetStatus("status")
	require.NoError(t, b.Close())
	assert.Empty(t, b.err.String())
	f := must.Get(os.Open(os.DevNull))(t)
	defer f.Close()
	t.Setenv("TERM", "xterm")
	assert.False(t, IsTerminal(f))
}

func TestNothingIsTornWithAStatusLineAndManyWriters(t *testing.T) {
	var s screen
	c := NewConsole(&s, &s, ConsoleOptions{Prefix: workers, Terminal: always})
	var wg sync.WaitGroup
	for rank := range 8 {
		wg.Go(func() {
			for i := range 200 {
				c.Deliver(Chunk{Stream: Stream{Rank: rank, Stderr: i%2 == 0}, Data: fmt.Appendf(nil, "line %d\n", i), Start: true})
			}
		})
		wg.Go(func() {
			for i := range 100 {
				c.SetStatus(fmt.Sprintf("%d %d", rank, i))
			}
		})
	}
	wg.Wait()
	require.NoError(t, c.Close())
	var want []string
	for rank := range 8 {
		for i := range 200 {
			want = append(want, fmt.Sprintf("[worker-%d]:    line %d", rank, i))
		}
	}
	assert.ElementsMatch(t, want, s.lines)
}

var aLine = regexp.MustCompile(`^(\[worker-[01]\]: {4}|status)`)

// However the output of two tasks is split into writes, each line on a terminal starts with a prefix,
// and no task can color or move it. Without carriage returns, an output that is not a terminal gets the
// bytes as they were written.
func FuzzConsole(f *testing.F) {
	for _, s := range []string{
		"a\n\x1b[31mb\nc", "\r1%\r2%\n", "x\r\n", "\x1b]8;;u\x1b\\a\n\r\x1b[K\r\n", "\r\x1b[1m\r\n\n", "a\rb\x1b[A\n\n\rc",
		"\r" + strings.Repeat("x", 4<<10) + "\ry\n", "\r   \r\r\n\xc2\r\n",
	} {
		f.Add([]byte(s), []byte("other\n\rbar"), byte(3))
	}
	f.Fuzz(func(t *testing.T, one, two []byte, step byte) {
		texts := [2][]byte{bytes.ReplaceAll(one, []byte("\b"), nil), bytes.ReplaceAll(two, []byte("\b"), nil)}
		term := newTerminal(1<<20, 8)
		c := NewConsole(term, term, ConsoleOptions{Prefix: workers, Terminal: always})
		var out bytes.Buffer
		plain := NewConsole(&out, io.Discard, ConsoleOptions{})
		var want [2]bytes.Buffer
		var open [2]bool
		n := 1 + int(step)
		for i := 0; len(texts[0])+len(texts[1]) > 0; i++ {
			rank := i % 2
			piece := texts[rank][:min(n, len(texts[rank]))]
			texts[rank] = texts[rank][len(piece):]
			switch {
			case len(piece) > 0:
				chunk := Chunk{Stream: Stream{Rank: rank}, Data: piece, Start: !open[rank]}
				open[rank] = !chunk.End()
				want[rank].Write(piece)
				c.Deliver(chunk)
				if rank == 0 {
					plain.Deliver(chunk)
				}
			case i%3 == 0:
				c.SetStatus(fmt.Sprint("status ", i))
			}
		}
		require.NoError(t, c.Close())
		require.NoError(t, plain.Close())
		assert.Empty(t, term.unknown)
		for i, l := range term.text() {
			if l != "" && !aLine.MatchString(l+"    ") {
				t.Errorf("%q", l)
			}
			if l != "" {
				assert.Regexp(t, `^\[worker-[01]\]:    `, term.pens(i))
			}
		}
		if text := want[0].String(); !strings.Contains(text, "\r") {
			if text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			assert.Equal(t, text, out.String())
		}
	})
}

// openPTY opens a real terminal, and returns both sides.
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

// A terminal is recognized, and both outputs are recognized as the same terminal.
func TestARealTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	shower, tty := openPTY(t, 40, 6)
	again := must.Get(os.OpenFile(tty.Name(), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	c := NewConsole(tty, again, ConsoleOptions{Prefix: workers})
	assert.True(t, c.out.place == c.err.place && c.err.place.terminal)

	shown := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(shower) // until the terminal is closed everywhere
		shown <- b
	}()
	c.SetStatus("a status line that is longer than forty columns")
	for rank := range 5 {
		c.Deliver(Chunk{Stream: Stream{Rank: rank, Stderr: true}, Data: []byte("\r#\r" + strings.Repeat("#", 20)), Start: true})
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
		"[worker-0]:    " + strings.Repeat("#", 20), "[worker-0]:    red", "[worker-1]:    " + strings.Repeat("#", 20), "[worker-1]:    red",
		"[worker-2]:    " + strings.Repeat("#", 20), "[worker-2]:    red", "[worker-3]:    " + strings.Repeat("#", 20), "[worker-3]:    red",
		"[worker-4]:    " + strings.Repeat("#", 20), "[worker-4]:    red",
		"[worker-0]:    done", "[worker-1]:    done", "[worker-2]:    done", "[worker-3]:    done", "[worker-4]:    done",
	}, term.text())

	t.Setenv("TERM", "dumb")
	assert.False(t, IsTerminal(again))
}

func filtered(text string) string { return string(appendSafe(nil, []byte(text))) }

// The cases are effects that a tailed line may have on a terminal, and effects that it may not have.
func TestSafeText(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"text":                     {"plain é\tx\xff", "plain é\tx\ufffd"},
		"colours":                  {"\x1b[31mred\x1b[0m \x1b[1;38;5;200mx\x1b[m\n", "\x1b[31mred\x1b[0m \x1b[1;38;5;200mx\x1b[m\x1b[0m\n"},
		"colons":                   {"\x1b[4:3m\x1b[38:2::1:2:3mx", "\x1b[4:3m\x1b[38:2::1:2:3mx\x1b[0m"},
		"cursor":                   {"a\x1b[Ab\x1b[10;10Hc\x1b[2Jd\x1b[Ke\x1b7f\x1b8g\x1bMh\x1bDi", "abcdefghi"},
		"screens":                  {"\x1b[?1049ha\x1b[?25lb\x1b[?7l", "ab"},
		"scrolling":                {"\x1b[5;10ra\x1b[3Sb\x1b[2Lc", "abc"},
		"keyboard modes, not SGR":  {"\x1b[>4;2ma\x1b[?4mb", "ab"},
		"character sets":           {"\x1b(0a\x0eb\x0fc\x1b%Gd", "abcd"},
		"reset":                    {"\x1bca\x1b[!pb", "ab"},
		"title and clipboard":      {"\x1b]0;title\ax\x1b]52;c;aGk=\x1b\\y", "xy"},
		"device control":           {"\x1bPq#0;2;0;0;0\x1b\\x\x1b_Gf=100;AAAA\x1b\\y\x1b^p\x1b\\z\x1bXs\x1b\\!", "xyz!"},
		"answerback, tabs and FF":  {"a\x05b\vc\fd\a", "abcd"},
		"link":                     {"\x1b]8;id=1;http://x/\ahere\x1b]8;;\a", "here"},
		"C1 controls":              {"a\u009b2Jb\u0085d", "a2Jbd"},
		"Latin-1":                  {"£ 5 §", "£ 5 §"},
		"half a letter":            {"a\xc2\x1b[K\x9bb\xc2", "a\ufffd\ufffdb\ufffd"},
		"broken by another":        {"a\x1b[3\x1b[32mb", "a\x1b[32mb\x1b[0m"},
		"string broken by another": {"a\x1b]0;x\x1b[32mb", "a\x1b[32mb\x1b[0m"},
		"unfinished":               {"a\x1b[31", "a"},
		"unfinished string":        {"a\x1b]0;title", "a"},
		"only an escape":           {"a\x1b", "a"},
		"backspace":                {"b\bb", "b\bb"},
	} {
		assert.Equal(t, c.out, filtered(c.in), name)
	}
}

// For any text, a terminal gets only text and attributes.
func FuzzSafeText(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\x1b]8;;x\x1b\\y", "\x1bP1\x1b\\", "\u009b2J", "\x1b\x1b[\x1b]\x1b\\", "\xc2\x1b[K\x9b", "\x1b(\x1b[1m"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		text = bytes.ReplaceAll(text, []byte("\n"), nil)
		cut = min(max(cut, 0), len(text))
		term := newTerminal(80, 5)
		_, _ = term.Write([]byte(filtered(string(text[:cut])) + filtered(string(text[cut:]))))
		assert.Empty(t, term.unknown)
	})
}
