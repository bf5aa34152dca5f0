package tasklog

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

var shortLines = bytes.Repeat([]byte("a short line of a program\n"), 1_000_000)

func linesPerSecond(b *testing.B) {
	b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds(), "lines/s")
}

// BenchmarkFollow measures the whole way from files to the console.
func BenchmarkFollow(b *testing.B) {
	run := b.TempDir()
	dir := ProcessDir(run, 0, 0)
	if err := MakeDir(dir); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, StdoutFile), shortLines, 0o600); err != nil {
		b.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		console := NewConsole(null, null, ConsoleOptions{Prefix: workers})
		f := Follow(run, console.Deliver, FollowOptions{})
		if err := f.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	linesPerSecond(b)
}

func BenchmarkConsole(b *testing.B) {
	console := NewConsole(io.Discard, io.Discard, ConsoleOptions{Prefix: workers})
	for range b.N {
		for data := shortLines; len(data) > 0; {
			n := bytes.LastIndexByte(data[:min(readSize, len(data))], '\n') + 1
			console.Deliver(Chunk{Data: data[:n], Start: true})
			data = data[n:]
		}
	}
	linesPerSecond(b)
}

// BenchmarkBarePrefixLoop measures a minimal program for comparison.
func BenchmarkBarePrefixLoop(b *testing.B) {
	prefix := []byte(workers(0, 0))
	for range b.N {
		in := bufio.NewScanner(bytes.NewReader(shortLines))
		out := bufio.NewWriter(io.Discard)
		for in.Scan() {
			_, _ = out.Write(prefix)
			_, _ = out.Write(in.Bytes())
			_ = out.WriteByte('\n')
		}
		_ = out.Flush()
	}
	linesPerSecond(b)
}

// BenchmarkConsoleWithCare measures coloured lines on a terminal, and lines with carriage
// returns elsewhere.
func BenchmarkConsoleWithCare(b *testing.B) {
	for name, line := range map[string]string{"colours": "\x1b[32mINFO\x1b[0m a line\n", "returns": "a short line of a progr\r\n", "bars": "\r 10% of 20\r 20% of 20\r\n"} {
		b.Run(name, func(b *testing.B) {
			text := bytes.Repeat([]byte(line), 10_000)
			console := NewConsole(io.Discard, io.Discard, ConsoleOptions{Prefix: workers, Terminal: func(io.Writer) bool { return name == "colours" }})
			b.ReportAllocs()
			for range b.N {
				console.Deliver(Chunk{Data: text, Start: true})
			}
			b.ReportMetric(float64(b.N)*1e4/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

// BenchmarkCollect measures what filtering costs a host, for logs in which few lines match.
func BenchmarkCollect(b *testing.B) {
	run := b.TempDir()
	dir := ProcessDir(run, 0, 0)
	require.NoError(b, MakeDir(dir))
	line := strings.Repeat("x", 99) + "\n"
	text := []byte(strings.Repeat(strings.Repeat(line, 99)+"loss"+line, 10_000)) // 100 MB
	require.NoError(b, os.WriteFile(filepath.Join(dir, StdoutFile), text, 0o600))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c := Collect(run, CollectOptions{Stdout: []string{"loss", "accuracy"}})
		require.NoError(b, c.Stop(b.Context()))
	}
}

// BenchmarkTimes measures what each heartbeat of a writing process pays to note its output.
func BenchmarkTimes(b *testing.B) {
	dir := b.TempDir()
	f := must.Get(os.Create(filepath.Join(dir, StdoutFile)))(b)
	defer f.Close()
	times := NewTimes(dir)
	for n := int64(1); b.Loop(); n++ {
		require.NoError(b, f.Truncate(n))
		times.Note()
	}
}
