package bench

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
	pythonsdk "github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const pythonServe = `
import clusterrun
@clusterrun.function
def f(n):
    return n
clusterrun.serve()
`

// pythonPool does the same on one machine: a pool of processes, one item at a time.
const pythonPool = `
import multiprocessing, sys, time
def f(n):
    return n
if __name__ == "__main__":
    count = int(sys.argv[1])
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(f, range(100))
        started = time.perf_counter()
        for _ in pool.imap_unordered(f, range(count)):
            pass
        throughput = count / (time.perf_counter() - started)
        took = []
        for i in range(1000):
            started = time.perf_counter()
            pool.apply(f, (i,))
            took.append(time.perf_counter() - started)
        print(throughput, sorted(took)[500] * 1e6)
`

// brokers has one broker for all tasks.
type brokers struct{ *closures.Broker }

func (b brokers) Next(ctx context.Context, by runkey.Task, in taskapi.ClosuresRequest) (taskapi.ClosuresAnswer, error) {
	return b.Broker.Next(ctx, by.Task, in)
}

// startServing starts processes of some tasks that serve, and waits until all do.
func startServing(b *testing.B, n int, start func(socket string) *exec.Cmd) *closures.Broker {
	b.Helper()
	all := make(chan struct{})
	var once sync.Once
	broker := closures.NewBroker(closures.Config{Log: zap.NewNop(), Restart: func(string) {}, Changed: func(list []closure.ServingTask) {
		if len(list) == n {
			once.Do(func() { close(all) })
		}
	}})
	b.Cleanup(broker.Close)
	s, err := taskapi.NewServer(taskapi.Config{StateDir: b.TempDir(), Closures: brokers{broker}, Log: zap.NewNop()})
	require.NoError(b, err)
	b.Cleanup(func() { _ = s.Close() })
	view := &taskapi.View{Here: map[string]bool{}}
	for i := range n {
		name := "worker-" + strconv.Itoa(i)
		path, err := s.Listen(taskapi.Task{ID: runkey.Task{Task: name}, View: view})
		require.NoError(b, err)
		cmd := start(path)
		cmd.Stderr = os.Stderr
		require.NoError(b, cmd.Start())
		b.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	<-all
	return broker
}

func closureOf(id uint64) closure.Closure {
	return closure.Closure{ID: id, Function: "f", Args: json.RawMessage("[" + strconv.FormatUint(id, 10) + "]"), Attempt: 1}
}

// flood lets the broker's processes call n closures as fast as they can, with as many leases as
// a queue would have. Each lease is refilled with the next closures.
func flood(b *testing.B, broker *closures.Broker, first, n uint64) (perSecond float64, leases int64) {
	b.Helper()
	var next atomic.Uint64
	var count atomic.Int64
	var group sync.WaitGroup
	started := time.Now()
	for range 4 {
		group.Go(func() {
			var list []closure.Closure
			for {
				for len(list) < closure.MaxBatch {
					id := next.Add(1)
					if id > n {
						break
					}
					list = append(list, closureOf(first+id))
				}
				if len(list) == 0 {
					return
				}
				r, err := broker.Lease(context.Background(), closure.Lease{Closures: list})
				if err != nil {
					b.Error(err)
					return
				}
				count.Add(1)
				for _, o := range r.Outcomes {
					if o.Error != nil || string(o.Value) != strconv.FormatUint(o.ID, 10) {
						b.Errorf("%d: %s %v", o.ID, o.Value, o.Error)
					}
				}
				list = list[:0]
				for _, id := range r.Rest {
					list = append(list, closure.Closure{ID: id})
				}
			}
		})
	}
	group.Wait()
	return float64(n) / time.Since(started).Seconds(), count.Load()
}

// lone returns the time of n closures that are scheduled one after the other.
func lone(b *testing.B, broker *closures.Broker, first uint64, n int) time.Duration {
	b.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		started := time.Now()
		r, err := broker.Lease(context.Background(), closure.Lease{Closures: []closure.Closure{closureOf(first + uint64(i))}})
		took[i] = time.Since(started)
		require.NoError(b, err)
		require.Len(b, r.Outcomes, 1)
	}
	return median(took)
}

func benchClosures(b *testing.B, goal float64, start func(socket string) *exec.Cmd) {
	const n = 100_000
	broker := startServing(b, 4, start)
	lone(b, broker, 1, 500)
	latency := lone(b, broker, 1000, 2000)
	flood(b, broker, 10_000, 20_000)
	perSecond, leases := flood(b, broker, 1_000_000, n)
	b.ReportMetric(us(latency), "us/lone")
	b.ReportMetric(perSecond, "closures/s")
	b.ReportMetric(float64(n)/float64(leases), "per-lease")
	b.ReportMetric(perSecond/goal, "of-goal")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkClosuresGo measures how many closures four Go processes call that do nothing, and
// the time of a single one, without Temporal. Goals: 50,000 a second, 1 ms.
func BenchmarkClosuresGo(b *testing.B) {
	argv := program(b, "serve")
	benchClosures(b, 50_000, func(socket string) *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), taskapi.SocketVar+"="+socket)
		return cmd
	})
}

// BenchmarkClosuresPython does the same with Python processes, and compares with a
// multiprocessing pool. Goals: 15,000 a second, 1 ms.
func BenchmarkClosuresPython(b *testing.B) {
	module, err := pythonsdk.Install(b.TempDir(), "")
	require.NoError(b, err)
	benchClosures(b, 15_000, func(socket string) *exec.Cmd {
		cmd := exec.Command("python3", "-c", pythonServe)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+module, taskapi.SocketVar+"="+socket)
		return cmd
	})
	pool := filepath.Join(b.TempDir(), "pool.py")
	require.NoError(b, os.WriteFile(pool, []byte(pythonPool), 0o600))
	cmd := exec.Command("python3", pool, "30000")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(b, err)
	fields := strings.Fields(string(out))
	require.Len(b, fields, 2)
	for i, unit := range []string{"pool/s", "us/pool-lone"} {
		v, err := strconv.ParseFloat(fields[i], 64)
		require.NoError(b, err)
		b.ReportMetric(v, unit)
	}
}
