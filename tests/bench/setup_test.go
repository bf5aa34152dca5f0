package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// fixture is a server with one host worker.
type fixture struct {
	*harness.Server
	b      *testing.B
	worker *harness.Worker
	client client.Client
	dir    string
	runs   int
}

// startServer starts the server that CLUSTERRUN_BENCH_SERVER names: "postgresql" is Temporal's own with
// that database, and the default is the embedded one.
func startServer(b *testing.B) *harness.Server {
	b.Helper()
	switch name := os.Getenv("CLUSTERRUN_BENCH_SERVER"); name {
	case "", "embedded":
		return harness.StartServer(b, "--headless")
	case "postgresql":
		return harness.StartTemporal(b)
	default:
		b.Fatalf("CLUSTERRUN_BENCH_SERVER=%s: it is neither embedded nor postgresql", name)
		return nil
	}
}

func newFixture(b *testing.B) *fixture {
	b.Helper()
	s := startServer(b)
	return &fixture{Server: s, b: b, worker: s.StartWorker(b), client: s.Client(), dir: b.TempDir()}
}

func (f *fixture) start(s *spec.RunSpec) client.WorkflowRun {
	f.b.Helper()
	f.runs++
	run, err := f.client.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{
		ID: fmt.Sprintf("bench-%d", f.runs), TaskQueue: spec.TaskQueue,
	}, spec.WorkflowType, s)
	require.NoError(f.b, err)
	return run
}

// stop ends a run and waits until it has closed.
func (f *fixture) stop(run client.WorkflowRun) {
	f.b.Helper()
	require.NoError(f.b, f.client.CancelWorkflow(context.Background(), run.GetID(), run.GetRunID()))
	_ = run.Get(context.Background(), nil)
}

// fifo is a named pipe through which processes report, without a clock of their own.
type fifo struct {
	path string
	*os.File
}

func newFIFO(b *testing.B, dir string) *fifo {
	b.Helper()
	path := filepath.Join(dir, fmt.Sprintf("fifo-%d", time.Now().UnixNano()))
	require.NoError(b, syscall.Mkfifo(path, 0o600))
	// Read and write, so that opening does not wait for the first process.
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(b, err)
	b.Cleanup(func() { _ = file.Close() })
	return &fifo{path: path, File: file}
}

// await reads n marks.
func (f *fifo) await(b *testing.B, n int) time.Time {
	b.Helper()
	require.NoError(b, f.SetReadDeadline(time.Now().Add(2*time.Minute)))
	buf := make([]byte, n)
	for got := 0; got < n; {
		m, err := f.Read(buf[:n-got])
		require.NoError(b, err, "%d of %d processes reported", got, n)
		got += m
	}
	return time.Now()
}

func median(d []time.Duration) time.Duration { return measure.Series(d).Median() }

func ms(d time.Duration) float64 { return measure.Milliseconds(d) }

// program returns the command line that starts this executable as a program of a measurement.
func program(b *testing.B, args ...string) []string {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	return append([]string{self, "program"}, args...)
}

func count(n int) *int { return &n }
