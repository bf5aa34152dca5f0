package tasklog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	again, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
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

// A writer to an output without a reader waits, and no other writer does.
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
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
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
