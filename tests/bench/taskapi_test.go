package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	pythonsdk "github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/tests/peers"
)

// This program is the server that is measured, too.
func init() {
	if len(os.Args) == 4 && os.Args[1] == "taskapi-serve" {
		exit(serveTasks(os.Args[2], os.Args[3]))
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
		path, err := s.Listen(taskapi.Task{ID: runkey.Task{Task: name}, View: view})
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// barrierServer is a process that serves n clients at the paths it printed.
type barrierServer struct {
	*exec.Cmd
	paths []string
}

func startBarrierServer(b *testing.B, n int) *barrierServer {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.Command(self, "taskapi-serve", b.TempDir(), strconv.Itoa(n))
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

// start starts tasks without a run: a shell gives each its socket.
func (s *barrierServer) start(_ string, _ int, argv []string) ([]string, error) {
	const script = `sockets=$1; shift; for s in $sockets; do CLUSTERRUN_SOCKET=$s "$@" & done; wait`
	return append([]string{"/bin/sh", "-c", script, "sh", strings.Join(s.paths, " ")}, argv...), nil
}

func (s *barrierServer) perRound(b *testing.B, client ...string) time.Duration {
	b.Helper()
	took, err := (&measure.Place{Dir: b.TempDir()}).Barrier(b.Context(), s.start, len(s.paths), client)
	require.NoError(b, err)
	return took
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// BenchmarkLocalBarrier measures a round of a local barrier of n processes that do nothing
// else, with the Go client. It compares with a coordinator that exchanges single bytes. Goal:
// 2.5 times its time.
func BenchmarkLocalBarrier(b *testing.B) {
	for _, n := range []int{2, 8, 32} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			count := 20000 / n
			ours := startBarrierServer(b, n)
			var floors, tooks []time.Duration
			for range 3 {
				floor, err := (&measure.Place{Dir: b.TempDir()}).Exchange(b.Context(), n, count, program(b))
				require.NoError(b, err)
				floors = append(floors, floor)
				tooks = append(tooks, ours.perRound(b, program(b, "barrier", strconv.Itoa(count))...))
			}
			floor, took := slices.Min(floors), slices.Min(tooks)
			b.ReportMetric(us(took), "us/barrier")
			b.ReportMetric(us(floor), "us/bare")
			b.ReportMetric(took.Seconds()/floor.Seconds(), "of-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// pythonRounds returns how long a round takes by a script that prints that.
func pythonRounds(b *testing.B, script string, n int, count string) time.Duration {
	b.Helper()
	figures, err := peers.Run(b.Context(), script, strconv.Itoa(n), count)
	require.NoError(b, err)
	return time.Duration(figures[0])
}

// BenchmarkLocalBarrierPython does the same with the Python client. It compares with the
// barriers of a multiprocessing manager and of torch's store. Goal: faster than both with 8
// processes.
func BenchmarkLocalBarrierPython(b *testing.B) {
	hasTorch := exec.Command("/usr/bin/python3", "-c", "import torch.distributed").Run() == nil
	module, err := pythonsdk.Install(b.TempDir(), "")
	require.NoError(b, err)
	path, err := peers.Script("barrier_clusterrun", b.TempDir())
	require.NoError(b, err)
	for _, n := range []int{2, 8, 32} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			count := strconv.Itoa(4000 / n)
			ours := startBarrierServer(b, n)
			store, manager, took := time.Hour, time.Hour, time.Hour
			for range 3 { // in turns: the speed of the machine varies
				took = min(took, ours.perRound(b, "env", "PYTHONPATH="+module, "/usr/bin/python3", path, count))
				manager = min(manager, pythonRounds(b, "barrier_multiprocessing", n, count))
				if hasTorch && n >= 8 {
					store = min(store, pythonRounds(b, "barrier_tcpstore", n, count))
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
	s := startBarrierServer(b, 8)
	_ = s.perRound(b, program(b, "barrier", "2000")...)
	before := residentMiB([]int{s.Process.Pid})
	_ = s.perRound(b, program(b, "barrier", "10000")...)
	after := residentMiB([]int{s.Process.Pid})
	b.ReportMetric(before, "MiB-before")
	b.ReportMetric(after, "MiB-after")
	b.ReportMetric(after-before, "MiB-grown")
	b.ReportMetric(0, "ns/op")
}
