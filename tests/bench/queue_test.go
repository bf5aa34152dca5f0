package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkClosureQueue is closures from the coordinator to a value it has fetched,
// through the queue's workflow on a server with its database in a file: a flood of
// trivial ones with four serving processes, and one alone. Celery on Redis and Dask
// do the same beside it, where they are installed (Debian: python3-celery,
// redis-server, python3-distributed); neither would survive what this does.
//
// CLUSTERRUN_CLOSURES replaces the 200,000 closures.
func BenchmarkClosureQueue(b *testing.B) {
	count := 200_000
	if n, err := strconv.Atoi(os.Getenv("CLUSTERRUN_CLOSURES")); err == nil {
		count = n
	}
	peers := map[string]float64{}
	for _, peer := range []struct{ name, script string }{{"Celery", celeryPeer}, {"Dask", daskPeer}} {
		b.Run(peer.name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			if rate, alone, ok := runPeer(b, peer.script); ok {
				peers[peer.name] = rate
				b.ReportMetric(rate, "closures/s")
				b.ReportMetric(ms(alone), "ms/alone")
			}
		})
	}
	self, err := os.Executable()
	require.NoError(b, err)
	python := filepath.Join(b.TempDir(), "serve.py")
	require.NoError(b, os.WriteFile(python, []byte(pythonServe), 0o600))
	for _, c := range []struct {
		name    string
		command []string
		goal    float64
	}{
		{"Go", []string{"sh", "-c", "exec " + self + ` closures-serve "$CLUSTERRUN_SOCKET"`}, 5000},
		{"Python", []string{"python3", python}, 2000},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			f := newQueueFlood(b, c.command)
			alone := f.alone(200)
			f.all(count / 10) // to warm everything up, memory included
			before := f.memory()
			rate := f.flood(count)
			b.ReportMetric(rate, "closures/s")
			b.ReportMetric(rate/c.goal, "of-goal")
			b.ReportMetric(ms(alone), "ms/alone")
			b.ReportMetric(f.memory()-before, "MiB-grown")
			b.ReportMetric(ms(f.longestTask()), "ms/longest-workflow-task")
			for name, theirs := range peers {
				b.ReportMetric(rate/theirs, "x-"+name)
			}
		})
	}
}

// queueFlood is a run whose tasks serve, and a coordinator.
type queueFlood struct {
	b      *testing.B
	c      *clustercoordinator.Coordinator
	worker *harness.Worker
	client client.Client
}

// longestTask is the longest of the queue's workflow tasks. How short their timeout can
// be follows from it.
func (f *queueFlood) longestTask() (longest time.Duration) {
	f.b.Helper()
	status, err := f.c.Queue().Status(f.b.Context())
	require.NoError(f.b, err)
	for _, e := range status.Executions {
		var started time.Time
		events := f.client.GetWorkflowHistory(f.b.Context(), f.c.Queue().ID(), e.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(f.b, err)
			switch event.EventType {
			case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
				started = event.EventTime.AsTime()
			case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
				longest = max(longest, event.EventTime.AsTime().Sub(started))
			}
		}
	}
	return longest
}

func newQueueFlood(b *testing.B, command []string) *queueFlood {
	b.Helper()
	s := harness.StartServer(b, "--headless")
	w := s.StartWorker(b)
	code, dir, stderr := s.CLI(b, "task", "python", "--dir")
	require.Zero(b, code, stderr)
	four := 4
	run, err := s.Client().ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{ID: "flood", TaskQueue: spec.TaskQueue}, spec.WorkflowType,
		&spec.RunSpec{
			Command: command, Tasks: []spec.TaskGroup{{Type: "worker", Count: &four}}, AutoRestart: true,
			Env: spec.EnvOf(map[string]string{"PYTHONPATH": strings.TrimSpace(dir)}),
		})
	require.NoError(b, err)
	c, err := clustercoordinator.New(b.Context(), starter.Get(s.Client(), run.GetID(), run.GetRunID()))
	require.NoError(b, err)
	b.Cleanup(c.Close)
	f := &queueFlood{b, c, w, s.Client()}
	harness.Eventually(b, "four tasks serve", func() bool {
		q, err := c.Queue().Status(b.Context())
		return err == nil && len(q.Workers) == 4
	})
	f.alone(20)
	return f
}

// alone is the median time from scheduling one closure to having its value.
func (f *queueFlood) alone(times int) time.Duration {
	var took []time.Duration
	for i := range times {
		started := time.Now()
		v, err := f.c.Schedule(f.b.Context(), "f", i)
		require.NoError(f.b, err)
		_, err = clustercoordinator.Get[int](f.b.Context(), v)
		require.NoError(f.b, err)
		took = append(took, time.Since(started))
	}
	return median(took)
}

// flood is how many closures there are in a second.
func (f *queueFlood) flood(count int) float64 {
	started := time.Now()
	f.all(count)
	return float64(count) / time.Since(started).Seconds()
}

// all schedules count closures, and fetches and checks all values.
func (f *queueFlood) all(count int) {
	ctx := context.Background()
	values := make(chan *clustercoordinator.RemoteValue, 20_000)
	wrong := make(chan error, 1)
	go func() {
		defer close(wrong)
		i := 0
		for v := range values {
			n, err := clustercoordinator.Get[int](ctx, v)
			if err == nil && n != i {
				err = fmt.Errorf("closure %d has the value %d", i, n)
			}
			if err != nil {
				wrong <- err
				return
			}
			i++
		}
	}()
	for i := range count {
		v, err := f.c.Schedule(ctx, "f", i)
		require.NoError(f.b, err)
		select {
		case values <- v:
		case err := <-wrong:
			require.NoError(f.b, err)
		}
	}
	close(values)
	require.NoError(f.b, <-wrong)
	require.NoError(f.b, f.c.Join(ctx))
}

// memory is what the host worker and the workflow worker, one process here, have in
// memory.
func (f *queueFlood) memory() float64 { return residentMiB([]int{f.worker.Side()}) }

// runPeer runs a Python script that prints calls per second and the median seconds of
// one alone.
func runPeer(b *testing.B, script string) (rate float64, alone time.Duration, ok bool) {
	b.Helper()
	dir := b.TempDir()
	path := filepath.Join(dir, "peer_tasks.py")
	require.NoError(b, os.WriteFile(path, []byte(script), 0o600))
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", path)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONPATH="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Skipf("it does not run here: %v\n%s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var seconds float64
	_, err = fmt.Sscan(lines[len(lines)-1], &rate, &seconds)
	require.NoError(b, err, "%s", out)
	return rate, time.Duration(seconds * float64(time.Second)), true
}

const celeryPeer = `
import os, subprocess, sys, time
from celery import Celery
port = int(os.environ.get("PEER_REDIS_PORT", "46379"))
app = Celery("peer_tasks", broker="redis://127.0.0.1:%d/0" % port, backend="redis://127.0.0.1:%d/1" % port)
app.conf.worker_prefetch_multiplier = 64

@app.task(name="f")
def f(n):
    return n

if __name__ == "__main__":
    redis = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL)
    worker = subprocess.Popen([sys.executable, "-m", "celery", "-A", "peer_tasks", "worker", "-c", "4", "-l", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, C_FORCE_ROOT="1"))
    try:
        time.sleep(1)
        f.delay(0).get(timeout=60)
        for i in range(100):
            f.delay(i).get(timeout=60)
        took = []
        for i in range(200):
            started = time.perf_counter()
            f.delay(i).get(timeout=60)
            took.append(time.perf_counter() - started)
        count = 5000
        started = time.perf_counter()
        values = [f.delay(i) for i in range(count)]
        for i, v in enumerate(values):
            assert v.get(timeout=120) == i
        print(count / (time.perf_counter() - started), sorted(took)[100])
    finally:
        worker.terminate(); worker.wait()
        redis.terminate(); redis.wait()
`

const daskPeer = `
import sys, time
def f(n):
    return n
if __name__ == "__main__":
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.submit(f, -1).result()
        took = []
        for i in range(200):
            started = time.perf_counter()
            client.submit(f, i, pure=False).result()
            took.append(time.perf_counter() - started)
        count = 5000
        started = time.perf_counter()
        values = client.map(f, range(count), pure=False)
        assert client.gather(values) == list(range(count))
        print(count / (time.perf_counter() - started), sorted(took)[100])
`
