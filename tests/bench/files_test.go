package bench

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/tests/harness"
)

// BenchmarkRedirect measures the time in which a program writes 4,000,000 lines of 100 bytes
// one by one, by its own clock, to the file that a run gives it and that is not followed. It
// compares with a file that the program gets from the benchmark. Goal: 5% more at most.
func BenchmarkRedirect(b *testing.B) {
	const lines = "4000000"
	self, err := os.Executable()
	require.NoError(b, err)
	home := b.TempDir()
	timed(b, home, harness.Clusterrun(b), "run", "-n", "1", "--", "true")
	b.Cleanup(func() { stopOwnServer(b, home) })
	logs := filepath.Join(home, "logs")
	var ours, floor []time.Duration
	for range 7 {
		floor = append(floor, writeBare(b, home, self, "write-slowly", lines))
		timed(b, home, harness.Clusterrun(b), "run", "-n", "1", "--tee", "0", "--log-dir", logs, "--", self, "write-slowly", lines)
		files, err := filepath.Glob(filepath.Join(logs, "*", "*", "attempt_0", "0", tasklog.StderrFile))
		require.NoError(b, err)
		require.Len(b, files, 1)
		text, err := os.ReadFile(files[0])
		require.NoError(b, err)
		ours = append(ours, microseconds(b, text))
		require.NoError(b, os.RemoveAll(logs))
	}
	b.ReportMetric(ms(median(ours)), "ms/write")
	b.ReportMetric(ms(median(floor)), "ms/floor")
	b.ReportMetric(median(ours).Seconds()/median(floor).Seconds(), "of-floor")
	b.ReportMetric(0, "ns/op")
}

func writeBare(b *testing.B, home string, argv ...string) time.Duration {
	b.Helper()
	path := filepath.Join(home, "bare.log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(b, err)
	defer os.Remove(path)
	defer file.Close()
	var stderr bytes.Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = file, &stderr, harness.Env(home)
	require.NoError(b, cmd.Run())
	return microseconds(b, stderr.Bytes())
}

func microseconds(b *testing.B, text []byte) time.Duration {
	b.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(b, err)
	return time.Duration(n) * time.Microsecond
}

// BenchmarkIdleTails measures the processor time for following the 2,000 files of 1,000
// processes that write no output. Goal: 1% of one core.
func BenchmarkIdleTails(b *testing.B) {
	const tasks = 1000
	const period = 10 * time.Second
	run := b.TempDir()
	for rank := range tasks {
		dir := tasklog.ProcessDir(run, 0, rank)
		require.NoError(b, tasklog.MakeDir(dir))
		for _, name := range []string{tasklog.StdoutFile, tasklog.StderrFile} {
			require.NoError(b, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
		}
	}
	chunks := 0
	console := tasklog.NewConsole(io.Discard, io.Discard, tasklog.ConsoleOptions{})
	follower := tasklog.Follow(run, func(c tasklog.Chunk) {
		chunks++
		console.Deliver(c)
	}, tasklog.FollowOptions{OnError: func(err error) { b.Error(err) }})
	require.NoError(b, follower.Drain(b.Context()))
	require.Equal(b, 2*tasks, chunks)
	runtime.GC()
	before := processorTime(b)
	time.Sleep(period)
	used := processorTime(b) - before
	require.NoError(b, follower.Stop(b.Context()))
	b.ReportMetric(100*used.Seconds()/period.Seconds(), "%-of-a-core")
	b.ReportMetric(used.Seconds()/period.Seconds()/0.01, "of-goal")
	b.ReportMetric(0, "ns/op")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkGiantLine passes one line of 1 GiB on, in order, against reading the
// file. Goal: it takes no more than 8 MiB of memory.
func BenchmarkGiantLine(b *testing.B) {
	const size = 1 << 30
	run := b.TempDir()
	dir := tasklog.ProcessDir(run, 0, 0)
	require.NoError(b, tasklog.MakeDir(dir))
	path := filepath.Join(dir, tasklog.StdoutFile)
	want := sha256.New()
	writeGiantLine(b, io.MultiWriter(want, newFile(b, path)), size)

	started := time.Now()
	file, err := os.Open(path)
	require.NoError(b, err)
	defer file.Close()
	_, err = io.Copy(sha256.New(), file)
	require.NoError(b, err)
	floor := time.Since(started)

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := sha256.New()
	started = time.Now()
	console := tasklog.NewConsole(got, io.Discard, tasklog.ConsoleOptions{})
	follower := tasklog.Follow(run, console.Deliver, tasklog.FollowOptions{})
	require.NoError(b, follower.Stop(b.Context()))
	took := time.Since(started)
	runtime.ReadMemStats(&after)
	require.NoError(b, console.Close())
	require.Equal(b, want.Sum(nil), got.Sum(nil))
	b.ReportMetric(took.Seconds()/floor.Seconds(), "of-floor")
	b.ReportMetric(float64(after.Sys-before.Sys)/(1<<20), "MiB-grown")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/(1<<20), "MiB-allocated")
	b.ReportMetric(0, "ns/op")
}

func newFile(b *testing.B, path string) *os.File {
	b.Helper()
	f, err := os.Create(path)
	require.NoError(b, err)
	b.Cleanup(func() { _ = f.Close() })
	return f
}

func writeGiantLine(b *testing.B, w io.Writer, size int) {
	b.Helper()
	source := rand.New(rand.NewPCG(1, 2))
	block := make([]byte, 1<<20)
	for range size / len(block) {
		for i := 0; i < len(block); i += 8 {
			r := source.Uint64()
			for j := range 8 {
				block[i+j] = 'a' + byte(r>>(8*j)&15)
			}
		}
		_, err := w.Write(block)
		require.NoError(b, err)
	}
	_, err := w.Write([]byte("\n"))
	require.NoError(b, err)
}
