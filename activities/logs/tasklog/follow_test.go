package tasklog

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// collector is a sink that keeps everything it gets.
type collector struct {
	mu      sync.Mutex
	streams map[Stream][]byte
	chunks  []string // "attempt/rank/stream start? text"
	errors  []string
}

func (c *collector) add(chunk Chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams == nil {
		c.streams = map[Stream][]byte{}
	}
	sofar := c.streams[chunk.Stream]
	if begins := len(sofar) == 0 || sofar[len(sofar)-1] == '\n'; begins != chunk.Start {
		c.errors = append(c.errors, fmt.Sprintf("Start of %v is %v after %q", chunk.Stream, chunk.Start, sofar[max(0, len(sofar)-10):]))
	}
	c.streams[chunk.Stream] = append(sofar, chunk.Data...)
	c.chunks = append(c.chunks, string(chunk.Data))
}

func (c *collector) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors = append(c.errors, err.Error())
}

func (c *collector) text(s Stream) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.streams[s])
}

func (c *collector) problems() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errors
}

// makeProcess makes a process's log directory.
func makeProcess(t *testing.T, run string, attempt, rank int) (dir string) {
	t.Helper()
	dir = ProcessDir(run, attempt, rank)
	require.NoError(t, MakeDir(dir))
	return dir
}

func openLog(t *testing.T, dir, name string) *os.File {
	t.Helper()
	f := must.Get(os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

func appendTo(t *testing.T, dir, name, text string) {
	t.Helper()
	f := openLog(t, dir, name)
	_, err := f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func stop(t *testing.T, f *Follower) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, f.Stop(ctx))
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 10*time.Second, time.Millisecond, what)
}

// TE-46: the files are created after the start, in a directory that does not exist at first either.
func TestTail(t *testing.T) {
	const writers, lines = 32, 1000
	for name, prefix := range map[string]string{"default": spec.DefaultPrefix, "custom": "[worker{{.Index}}][{{.Rank}}]:"} {
		t.Run(name, func(t *testing.T) {
			run := filepath.Join(t.TempDir(), "not", "there", "yet")
			var out, err bytes.Buffer
			template, parseErr := spec.ParsePrefix(&prefix)
			require.NoError(t, parseErr)
			console := NewConsole(&out, &err, ConsoleOptions{Prefix: func(rank, attempt int) string {
				return template.Format(spec.PrefixFields{Type: "writer", Index: rank, Rank: rank, Attempt: attempt})
			}})
			f := Follow(run, console.Deliver, FollowOptions{})
			var wg sync.WaitGroup
			for rank := range writers {
				wg.Go(func() {
					time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
					file := openLog(t, makeProcess(t, run, 0, rank), StdoutFile)
					for i := range lines {
						fmt.Fprintln(file, "line", i)
					}
				})
			}
			wg.Wait()
			select {
			case <-f.done:
				t.Error("stopped before Stop")
			default:
			}
			stop(t, f)

			got := map[string]int{}
			for _, line := range SplitLines(out.String()) {
				got[line]++
			}
			assert.Len(t, got, writers*lines)
			for rank := range writers {
				p := template.Format(spec.PrefixFields{Type: "writer", Index: rank, Rank: rank})
				for i := range lines {
					if line := fmt.Sprintf("%sline %d", p, i); got[line] != 1 {
						t.Fatalf("%q was seen %d times", line, got[line])
					}
				}
			}
			assert.Empty(t, err.String())
		})
	}
}

// TE-48
func TestTailNoFiles(t *testing.T) {
	var o FollowOptions
	var c collector
	o.OnError = c.fail
	f := Follow(t.TempDir(), c.add, o)
	stop(t, f)
	stop(t, f)
	assert.Empty(t, c.streams)
	assert.Empty(t, c.problems())
}

// TE-49
func TestTailFileNeverAppears(t *testing.T) {
	var o FollowOptions
	before := runtime.NumGoroutine()
	run := filepath.Join(t.TempDir(), "run")
	var c collector
	o.OnError = c.fail
	f := Follow(run, c.add, o)
	g := Follow(t.TempDir(), c.add, o)
	stop(t, f)
	stop(t, g)
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), "helpers are left")
	}
	assert.Empty(t, c.problems())
	assert.NoDirExists(t, run)
}

// TE-50
func TestTailDirectoryInsteadOfFile(t *testing.T) {
	var o FollowOptions
	run := t.TempDir()
	dir := makeProcess(t, run, 0, 0)
	require.NoError(t, os.Mkdir(filepath.Join(dir, StdoutFile), 0o700))
	appendTo(t, dir, StderrFile, "good\n")
	var c collector
	o.OnError = c.fail
	f := Follow(run, c.add, o)
	eventually(t, "the other file", func() bool { return c.text(Stream{Stderr: true}) == "good\n" })
	appendTo(t, filepath.Join(dir, StdoutFile), "within", "x")
	stop(t, f)
	require.Len(t, c.problems(), 1)
	assert.Contains(t, c.problems()[0], filepath.Join(dir, StdoutFile)+": is a directory")
}

func TestTailFilesInsteadOfDirectories(t *testing.T) {
	var o FollowOptions
	root := t.TempDir()
	for name, path := range map[string]string{
		"the run's":     filepath.Join(root, "run"),
		"one above it":  filepath.Join(root, "run", "below", "it"),
		"the process's": root,
		"the attempt's": filepath.Join(root, "x"),
	} {
		t.Run(name, func(t *testing.T) {
			switch name {
			case "the process's":
				appendTo(t, filepath.Dir(makeProcess(t, root, 0, 1)), "0", "")
			case "the attempt's":
				require.NoError(t, MakeDir(path))
				appendTo(t, path, "attempt_0", "")
			default:
				appendTo(t, root, "run", "")
			}
			var c collector
			o.OnError = c.fail
			f := Follow(path, c.add, o)
			eventually(t, "the problem", func() bool { return len(c.problems()) > 0 })
			stop(t, f)
			assert.Len(t, c.problems(), 1, "%q", c.problems())
		})
	}
}

// Everything that is on disk when Stop is called has been delivered when it returns.
func TestStopDeliversEverything(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	for i := range 50 {
		var c collector
		f := Follow(run, c.add, FollowOptions{Hold: time.Hour})
		dir := makeProcess(t, run, i/10, 7)
		appendTo(t, dir, StderrFile, fmt.Sprintf("whole %d\nunfinished %d", i, i))
		stop(t, f)
		want := ""
		for k := i / 10 * 10; k <= i; k++ {
			want += fmt.Sprintf("whole %d\nunfinished %d", k, k)
		}
		assert.Equal(t, want, c.text(Stream{Rank: 7, Attempt: i / 10, Stderr: true}))
		assert.Empty(t, c.problems())
	}
}

// Inserted data follows the file's content, even within a line.
func TestInsert(t *testing.T) {
	run := t.TempDir()
	dir := makeProcess(t, run, 0, 3)
	appendTo(t, dir, StdoutFile, "one\ntw")
	var c collector
	f := Follow(run, c.add, FollowOptions{Hold: time.Hour, OnError: c.fail})
	for _, path := range []string{filepath.Join(dir, StdoutFile), filepath.Join(dir, "other.log"), "/elsewhere"} {
		f.Insert(path, []byte("o\nthree\n"))
	}
	appendTo(t, dir, StdoutFile, "four\n")
	stop(t, f)
	f.Insert(filepath.Join(dir, StdoutFile), []byte("too late\n"))
	assert.Equal(t, "one\ntwo\nthree\nfour\n", c.text(Stream{Rank: 3}))
	assert.Empty(t, c.problems())
}

func TestStopEndsWhileTheProcessWrites(t *testing.T) {
	run := t.TempDir()
	file := openLog(t, makeProcess(t, run, 0, 0), StdoutFile)
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		block := bytes.Repeat([]byte("y\n"), 16<<10)
		for {
			select {
			case <-quit:
				return
			case <-time.After(100 * time.Microsecond):
				_, _ = file.Write(block)
			}
		}
	})
	// The sink is slower than the writer, so that the end of the file is never reached.
	f := Follow(run, func(Chunk) { time.Sleep(5 * time.Millisecond) }, FollowOptions{})
	stop(t, f)
	close(quit)
	wg.Wait()
}

func TestWaitingForASinkHasAnEnd(t *testing.T) {
	run := t.TempDir()
	appendTo(t, makeProcess(t, run, 0, 0), StdoutFile, "x\n")
	release := make(chan struct{})
	f := Follow(run, func(Chunk) { <-release }, FollowOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, f.Stop(ctx), context.DeadlineExceeded)
	close(release)
	stop(t, f)
}

// SEED-90
func TestALastLineWithoutNewlineIsPassedOnWithoutOne(t *testing.T) {
	run := t.TempDir()
	appendTo(t, makeProcess(t, run, 0, 0), StdoutFile, "first\nlast")
	var c collector
	f := Follow(run, c.add, FollowOptions{Hold: time.Hour})
	eventually(t, "first", func() bool { return c.text(Stream{}) == "first\n" })
	stop(t, f)
	assert.Equal(t, "first\nlast", c.text(Stream{}))
}

func TestAnUnfinishedLineIsHeldBackForAWhile(t *testing.T) {
	var o FollowOptions
	o.Hold = 100 * time.Millisecond
	run := t.TempDir()
	dir := makeProcess(t, run, 0, 0)
	var c collector
	f := Follow(run, c.add, o)
	start := time.Now()
	appendTo(t, dir, StdoutFile, "whole\nDownloading")
	appendTo(t, dir, StdoutFile, " it…")
	eventually(t, "the unfinished line", func() bool { return c.text(Stream{}) == "whole\nDownloading it…" })
	assert.GreaterOrEqual(t, time.Since(start), o.Hold)
	appendTo(t, dir, StdoutFile, " done\n")
	eventually(t, "the rest", func() bool { return c.text(Stream{}) == "whole\nDownloading it… done\n" })
	stop(t, f)
	assert.Empty(t, c.problems())
}

func TestAttemptsOfATaskComeOneAfterTheOther(t *testing.T) {
	var o FollowOptions
	o.Hold = time.Hour
	run := t.TempDir()
	for n := range 3 { // existing from the start, in an order that differs from their names'
		appendTo(t, makeProcess(t, run, n*10, 4), StdoutFile, fmt.Sprintf("old %d", n))
	}
	var c collector
	f := Follow(run, c.add, o)
	for n := range 20 {
		dir := makeProcess(t, run, 21+n, 4)
		appendTo(t, dir, StdoutFile, fmt.Sprintf("new %d", n))
		if n%3 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	stop(t, f)
	want := []string{"old 0", "old 1", "old 2"}
	for n := range 20 {
		want = append(want, fmt.Sprintf("new %d", n))
	}
	assert.Equal(t, want, c.chunks)
}

func TestLateOutputOfAnEndedAttemptIsDrained(t *testing.T) {
	run := t.TempDir()
	first := makeProcess(t, run, 0, 0)
	appendTo(t, first, StdoutFile, "first\n")
	var c collector
	f := Follow(run, c.add, FollowOptions{})
	appendTo(t, makeProcess(t, run, 1, 0), StdoutFile, "second\n")
	eventually(t, "second", func() bool { return c.text(Stream{Attempt: 1}) == "second\n" })
	appendTo(t, first, StdoutFile, "a straggler\n")
	stop(t, f)
	assert.Equal(t, "first\na straggler\n", c.text(Stream{}))
}

func TestPrunedAttemptsAreForgotten(t *testing.T) {
	var o FollowOptions
	run := t.TempDir()
	var c collector
	o.OnError = c.fail
	f := Follow(run, c.add, o)
	for n := range 30 {
		for rank := range 2 {
			appendTo(t, makeProcess(t, run, n, rank), StdoutFile, "x\n")
		}
		for rank := range 2 {
			eventually(t, "the output", func() bool { return c.text(Stream{Rank: rank, Attempt: n}) == "x\n" })
		}
		require.NoError(t, Prune(run, 0, 3))
		require.NoError(t, Prune(run, 1, 3))
	}
	stop(t, f)
	assert.LessOrEqual(t, len(f.processes), 2*(1+3))
	assert.Len(t, c.streams, 60)
	assert.Empty(t, c.problems())
}

func TestTheRunDirectoryMayComeAndGo(t *testing.T) {
	var o FollowOptions
	run := filepath.Join(t.TempDir(), "a", "b", "run")
	var c collector
	o.OnError = c.fail
	f := Follow(run, c.add, o)
	for n := range 5 {
		appendTo(t, makeProcess(t, run, n, 0), StdoutFile, "x\n")
		eventually(t, "output", func() bool { return c.text(Stream{Attempt: n}) == "x\n" })
		require.NoError(t, os.RemoveAll(filepath.Dir(filepath.Dir(run))))
	}
	stop(t, f)
	assert.Empty(t, c.problems())
}

func TestSelect(t *testing.T) {
	var o FollowOptions
	run := t.TempDir()
	for rank := range 3 {
		for _, name := range []string{StdoutFile, StderrFile, ErrorFile, "other.log"} {
			appendTo(t, makeProcess(t, run, 0, rank), name, name+"\n")
		}
	}
	require.NoError(t, MakeDir(filepath.Join(run, "attempt_x", "0")))
	require.NoError(t, MakeDir(filepath.Join(run, "attempt_0", "not a rank")))
	var c collector
	// The selection is like redirects and tee masks: rank 0 has both streams, rank 1
	// stderr, rank 2 none.
	o.Select = func(s Stream) bool { return s.Rank == 0 || s.Rank == 1 && s.Stderr }
	f := Follow(run, c.add, o)
	stop(t, f)
	assert.Equal(t, map[Stream][]byte{
		{Rank: 0}:               []byte("stdout.log\n"),
		{Rank: 0, Stderr: true}: []byte("stderr.log\n"),
		{Rank: 1, Stderr: true}: []byte("stderr.log\n"),
	}, c.streams)
}

func TestTruncatedFile(t *testing.T) {
	run := t.TempDir()
	dir := makeProcess(t, run, 0, 0)
	appendTo(t, dir, StdoutFile, "before, and longer\n")
	var c collector
	f := Follow(run, c.add, FollowOptions{})
	eventually(t, "before", func() bool { return c.text(Stream{}) != "" })
	require.NoError(t, os.Truncate(filepath.Join(dir, StdoutFile), 0))
	appendTo(t, dir, StdoutFile, "after\n")
	stop(t, f)
	assert.Equal(t, "before, and longer\nafter\n", c.text(Stream{}))
}

// Several writers concurrently write their lines in pieces to both streams. On the console every
// line is whole, and in its stream's order.
func TestLinesAreNeitherLostNorTorn(t *testing.T) {
	const writers, lines = 16, 400
	var o FollowOptions
	run := t.TempDir()
	var out, err bytes.Buffer
	console := NewConsole(&out, &err, ConsoleOptions{Prefix: workers})
	o.Hold = time.Minute
	f := Follow(run, console.Deliver, o)
	var wg sync.WaitGroup
	for rank := range writers {
		dir := makeProcess(t, run, 0, rank)
		for _, name := range []string{StdoutFile, StderrFile} {
			file := openLog(t, dir, name)
			wg.Go(func() {
				for i := range lines {
					text := fmt.Sprintf("%s %d %s\n", name, i, strings.Repeat("é\xff", rand.IntN(100)))
					for text != "" {
						n := min(len(text), 1+rand.IntN(80))
						_, _ = file.WriteString(text[:n])
						text = text[n:]
					}
				}
			})
		}
	}
	wg.Wait()
	stop(t, f)
	for name, buf := range map[string]*bytes.Buffer{StdoutFile: &out, StderrFile: &err} {
		next := map[int]int{}
		for _, line := range SplitLines(buf.String()) {
			var rank, i int
			_, scanErr := fmt.Sscanf(line, "[worker-%d]: "+name+" %d ", &rank, &i)
			require.NoError(t, scanErr, "%q", line)
			require.Equal(t, next[rank], i)
			next[rank]++
			rest := line[strings.Index(line, name)+len(name)+len(fmt.Sprint(i))+2:]
			require.Equal(t, strings.Repeat("é\xff", len(rest)/3), rest)
		}
		for rank := range writers {
			assert.Equal(t, lines, next[rank])
		}
	}
}

func TestALineOf100MiBNeedsLittleMemory(t *testing.T) {
	const size = 100 << 20
	run := t.TempDir()
	file := openLog(t, makeProcess(t, run, 0, 0), StdoutFile)
	var n, newlines int
	counting := writerFunc(func(b []byte) (int, error) {
		n += len(b)
		newlines += bytes.Count(b, []byte("\n"))
		return len(b), nil
	})
	console := NewConsole(counting, &bytes.Buffer{}, ConsoleOptions{Prefix: workers})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f := Follow(run, console.Deliver, FollowOptions{})
	block := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	for range size / len(block) {
		_, err := file.Write(block)
		require.NoError(t, err)
	}
	_, err := file.WriteString("\nshort\n")
	require.NoError(t, err)
	stop(t, f)
	runtime.ReadMemStats(&after)
	prefix := len(workers(0, 0))
	assert.Equal(t, size+1+len("short\n")+2*prefix, n, "one prefix each: nobody came in between")
	assert.Equal(t, 2, newlines)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), "all allocations together")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Drained pieces are also whole lines, even if a read ends within a line, because another source
// may deliver in between.
func TestDrainedPiecesAreWholeLines(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, MakeDir(ProcessDir(dir, 0, 0)))
	text := strings.Repeat(strings.Repeat("x", 99)+"\n", 3*readSize/100) + "the end"
	require.NoError(t, os.WriteFile(filepath.Join(ProcessDir(dir, 0, 0), StdoutFile), []byte(text), 0o644))
	var pieces []string
	require.NoError(t, Follow(dir, func(c Chunk) { pieces = append(pieces, string(c.Data)) }, FollowOptions{}).Stop(t.Context()))
	assert.Equal(t, text, strings.Join(pieces, ""))
	for _, p := range pieces[:len(pieces)-1] {
		assert.Equal(t, "\n", p[len(p)-1:])
	}
}

// A file that is removed is read to its end.
func TestRemovedFiles(t *testing.T) {
	run := RunDir(t.TempDir(), "w", "r")
	dir := makeProcess(t, run, 0, 0)
	var got collector
	f := Follow(run, got.add, FollowOptions{OnError: got.fail, Hold: time.Hour})
	old := openLog(t, dir, StdoutFile)
	must.Get(old.WriteString("one\n"))(t)
	eventually(t, "the first line", func() bool { return got.text(Stream{}) == "one\n" })
	require.NoError(t, os.Remove(filepath.Join(dir, StdoutFile)))
	must.Get(old.WriteString("late\nunfinished"))(t)
	stop(t, f)
	assert.Equal(t, "one\nlate\nunfinished", got.text(Stream{}))
	assert.Empty(t, got.problems())
}
