package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/task"
	pythonsdk "github.com/clusterrun/clusterrun/activities/task/python"
	"github.com/clusterrun/clusterrun/activities/taskapi"
)

// warmUp is how many rounds are not measured.
const warmUp = 100

// This program is the servers and clients that are measured, too.
func init() {
	if len(os.Args) < 4 {
		return
	}
	switch os.Args[1] {
	case "taskapi-serve":
		exit(serveTasks(os.Args[2], os.Args[3]))
	case "bare-serve":
		exit(serveBare(os.Args[2], os.Args[3]))
	case "taskapi-client":
		exit(waitAsTask(os.Args[2], os.Args[3]))
	case "bare-client":
		exit(waitBare(os.Args[2], os.Args[3]))
	}
}

// serveTasks serves n tasks until its stdin ends.
func serveTasks(dir, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	s, err := taskapi.NewServer(taskapi.Config{StateDir: dir, Log: zap.NewNop()})
	if err != nil {
		return err
	}
	defer s.Close()
	view := &taskapi.View{Here: map[string]bool{}}
	for i := range n {
		name := "worker-" + strconv.Itoa(i)
		view.Members = append(view.Members, taskapi.Member{Task: name, Type: "worker", Index: i, Rank: i})
		view.Tasks = append(view.Tasks, name)
		view.Here[name] = true
	}
	for _, name := range view.Tasks {
		path, err := s.Listen(taskapi.Task{ID: taskapi.ID{Task: name}, View: view})
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// serveBare is the least that a barrier takes over a Unix socket: a byte from each
// of n clients, and then a byte to each.
func serveBare(dir, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "bare")
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	for range n {
		fmt.Println(path)
	}
	var mu sync.Mutex
	var waiting []net.Conn
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				b := make([]byte, 1)
				for {
					if _, err := c.Read(b); err != nil {
						return
					}
					mu.Lock()
					waiting = append(waiting, c)
					if len(waiting) == n {
						for _, w := range waiting {
							_, _ = w.Write(b)
						}
						waiting = waiting[:0]
					}
					mu.Unlock()
				}
			}()
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// rounds says how many nanoseconds the rounds of a barrier took.
func rounds(count string, barrier func() error) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	took := make([]time.Duration, 0, n)
	for i := range warmUp + n {
		started := time.Now()
		if err := barrier(); err != nil {
			return err
		}
		if i >= warmUp {
			took = append(took, time.Since(started))
		}
	}
	_, err = fmt.Println(median(took).Nanoseconds())
	return err
}

func waitAsTask(socket, count string) error {
	if err := os.Setenv(taskapi.SocketVar, socket); err != nil {
		return err
	}
	t, err := task.Current()
	if err != nil {
		return err
	}
	return rounds(count, func() error {
		_, err := t.Barrier(context.Background(), "bench", task.Local())
		return err
	})
}

func waitBare(socket, count string) error {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	b := []byte{1}
	return rounds(count, func() error {
		if _, err := c.Write(b); err != nil {
			return err
		}
		_, err := c.Read(b)
		return err
	})
}

// barrierServer is a process that serves n clients at the paths it printed.
type barrierServer struct {
	*exec.Cmd
	paths []string
}

func startBarrierServer(b *testing.B, kind string, n int) *barrierServer {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.Command(self, kind, b.TempDir(), strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	s := &barrierServer{Cmd: cmd}
	for lines := bufio.NewScanner(out); len(s.paths) < n; {
		require.True(b, lines.Scan(), "the server ended")
		s.paths = append(s.paths, lines.Text())
	}
	return s
}

// perRound is the median over the clients of their medians.
func (s *barrierServer) perRound(b *testing.B, client func(path string) *exec.Cmd) time.Duration {
	b.Helper()
	var all []time.Duration
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, path := range s.paths {
		group.Go(func() {
			cmd := client(path)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			n, parseErr := strconv.Atoi(strings.TrimSpace(string(out)))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || parseErr != nil {
				b.Errorf("a client failed: %v %v", err, parseErr)
				return
			}
			all = append(all, time.Duration(n))
		})
	}
	group.Wait()
	require.Len(b, all, len(s.paths))
	return median(all)
}

func goClient(b *testing.B, kind string, count int) func(string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(b, err)
	return func(path string) *exec.Cmd { return exec.Command(self, kind, path, strconv.Itoa(count)) }
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// BenchmarkLocalBarrier is how long a round of a local barrier takes n processes
// that do nothing else, with the Go client, against a coordinator that exchanges
// single bytes. Goal: 2.5 times that.
func BenchmarkLocalBarrier(b *testing.B) {
	for _, n := range []int{2, 8, 32} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			count := 20000 / n
			bare := startBarrierServer(b, "bare-serve", n)
			ours := startBarrierServer(b, "taskapi-serve", n)
			var floors, tooks []time.Duration
			for range 3 {
				floors = append(floors, bare.perRound(b, goClient(b, "bare-client", count)))
				tooks = append(tooks, ours.perRound(b, goClient(b, "taskapi-client", count)))
			}
			floor, took := slices.Min(floors), slices.Min(tooks)
			b.ReportMetric(us(took), "us/barrier")
			b.ReportMetric(us(floor), "us/bare")
			b.ReportMetric(took.Seconds()/floor.Seconds(), "of-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// pythonRounds measures the rounds of a barrier in Python; wait is defined by what
// comes before it.
const pythonRounds = `
import sys, time
def rounds(wait, count):
    took = []
    for i in range(100 + count):
        started = time.perf_counter_ns()
        wait()
        if i >= 100:
            took.append(time.perf_counter_ns() - started)
    took.sort()
    print(took[len(took) // 2], flush=True)
`

// The clients of each kind in Python: as a task, of multiprocessing's manager, and
// of torch's store.
const (
	pythonTask = pythonRounds + `
import clusterrun
rounds(clusterrun.get_barrier("bench", local=True).wait, int(sys.argv[2]))
`
	pythonManager = pythonRounds + `
import multiprocessing, statistics
def worker(barrier, count, out):
    took = []
    for i in range(100 + count):
        started = time.perf_counter_ns()
        barrier.wait()
        if i >= 100:
            took.append(time.perf_counter_ns() - started)
    out.put(statistics.median_low(took))
if __name__ == "__main__":
    n, count = int(sys.argv[1]), int(sys.argv[2])
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        barrier, out = manager.Barrier(n), context.Queue()
        workers = [context.Process(target=worker, args=(barrier, count, out)) for _ in range(n)]
        for w in workers: w.start()
        all = sorted(out.get() for _ in workers)
        for w in workers: w.join()
        print(all[len(all) // 2])
`
	// As torch.distributed.elastic's store barrier: everybody adds, the last sets a
	// key, all wait for it.
	pythonStore = pythonRounds + `
import multiprocessing, datetime, statistics
from torch.distributed import TCPStore
def worker(port, rank, n, count, out):
    store = TCPStore("127.0.0.1", port, n, False, datetime.timedelta(seconds=60))
    took = []
    for i in range(100 + count):
        started = time.perf_counter_ns()
        if store.add("n%d" % i, 1) == n:
            store.set("last%d" % i, "1")
        store.wait(["last%d" % i])
        if i >= 100:
            took.append(time.perf_counter_ns() - started)
    out.put(statistics.median_low(took))
    store.add("done", 1)
if __name__ == "__main__":
    n, count = int(sys.argv[1]), int(sys.argv[2])
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    server = TCPStore("127.0.0.1", 0, n + 1, True, datetime.timedelta(seconds=60), False)
    workers = [context.Process(target=worker, args=(server.port, r, n, count, out)) for r in range(n)]
    for w in workers: w.start()
    all = sorted(out.get() for _ in workers)
    for w in workers: w.join()
    print(all[len(all) // 2])
`
)

// python runs a program of the file system, and returns the number it prints.
func python(b *testing.B, program string, args ...string) time.Duration {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bench.py")
	require.NoError(b, os.WriteFile(path, []byte(program), 0o600))
	cmd := exec.Command("/usr/bin/python3", append([]string{path}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(b, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(b, err)
	return time.Duration(n)
}

// BenchmarkLocalBarrierPython is the same with the Python client, against the
// barrier of a multiprocessing manager and that of torch's store. Goal: faster
// than both with 8 processes.
func BenchmarkLocalBarrierPython(b *testing.B) {
	hasTorch := exec.Command("/usr/bin/python3", "-c", "import torch.distributed").Run() == nil
	module, err := pythonsdk.Install(b.TempDir(), "")
	require.NoError(b, err)
	program := filepath.Join(b.TempDir(), "task.py")
	require.NoError(b, os.WriteFile(program, []byte(pythonTask), 0o600))
	for _, n := range []int{2, 8, 32} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			count := strconv.Itoa(4000 / n)
			ours := startBarrierServer(b, "taskapi-serve", n)
			store, manager, took := time.Hour, time.Hour, time.Hour
			for range 3 { // in turns: the machine has its moods
				took = min(took, ours.perRound(b, func(path string) *exec.Cmd {
					cmd := exec.Command("/usr/bin/python3", program, "", count)
					cmd.Env = append(os.Environ(), "PYTHONPATH="+module, taskapi.SocketVar+"="+path)
					return cmd
				}))
				manager = min(manager, python(b, pythonManager, strconv.Itoa(n), count))
				if hasTorch && n >= 8 {
					store = min(store, python(b, pythonStore, strconv.Itoa(n), count))
				}
			}
			b.ReportMetric(us(took), "us/barrier")
			b.ReportMetric(us(manager), "us/manager")
			b.ReportMetric(took.Seconds()/manager.Seconds(), "of-manager")
			if hasTorch && n >= 8 {
				b.ReportMetric(us(store), "us/store")
				b.ReportMetric(took.Seconds()/store.Seconds(), "of-store")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLocalBarrierMemory is the resident memory of a server before and after
// 10,000 barriers of 8 tasks. Goal: it does not grow.
func BenchmarkLocalBarrierMemory(b *testing.B) {
	s := startBarrierServer(b, "taskapi-serve", 8)
	_ = s.perRound(b, goClient(b, "taskapi-client", 2000))
	before := residentMiB([]int{s.Process.Pid})
	_ = s.perRound(b, goClient(b, "taskapi-client", 10000))
	after := residentMiB([]int{s.Process.Pid})
	b.ReportMetric(before, "MiB-before")
	b.ReportMetric(after, "MiB-after")
	b.ReportMetric(after-before, "MiB-grown")
	b.ReportMetric(0, "ns/op")
}
