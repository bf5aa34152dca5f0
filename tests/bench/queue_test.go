package bench

import (
	"os"
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
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/tests/peers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkClosureQueue measures closures from scheduling to the fetched value, through the
// queue's workflow on a server with its database in a file: many trivial ones with four serving
// processes, and single ones. Celery on Redis and Dask do the same if they are installed
// (Debian: python3-celery, redis-server, python3-distributed). Neither would survive the faults
// that the queue survives.
//
// CLUSTERRUN_CLOSURES replaces the 200,000 closures.
func BenchmarkClosureQueue(b *testing.B) {
	count := 200_000
	if n, err := strconv.Atoi(os.Getenv("CLUSTERRUN_CLOSURES")); err == nil {
		count = n
	}
	rates := map[string]float64{}
	for _, peer := range []struct{ name, script string }{{"Celery", "closures_celery"}, {"Dask", "closures_dask"}} {
		b.Run(peer.name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			figures, err := peers.Run(b.Context(), peer.script)
			if err != nil {
				b.Skip(err)
			}
			rates[peer.name] = figures[0]
			b.ReportMetric(figures[0], "closures/s")
			b.ReportMetric(1000*figures[1], "ms/alone")
		})
	}
	python := filepath.Join(b.TempDir(), "serve.py")
	require.NoError(b, os.WriteFile(python, []byte(pythonServe), 0o600))
	for _, c := range []struct {
		name    string
		command []string
		goal    float64
	}{
		{"Go", program(b, "serve"), 5000},
		{"Python", []string{"python3", python}, 2000},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			f := newQueueFlood(b, c.command)
			alone := f.alone(200)
			f.flood(count / 10) // to warm everything up, memory included
			before := f.memory()
			rate := f.flood(count)
			b.ReportMetric(rate, "closures/s")
			b.ReportMetric(rate/c.goal, "of-goal")
			b.ReportMetric(ms(alone), "ms/alone")
			b.ReportMetric(f.memory()-before, "MiB-grown")
			b.ReportMetric(ms(f.longestTask()), "ms/longest-workflow-task")
			for name, theirs := range rates {
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
func (f *queueFlood) longestTask() time.Duration {
	f.b.Helper()
	var tasks taskClock
	status, err := f.c.Queue().Status(f.b.Context())
	require.NoError(f.b, err)
	for _, e := range status.Executions {
		events := f.client.GetWorkflowHistory(f.b.Context(), f.c.Queue().ID(), e.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(f.b, err)
			tasks.see(event)
		}
	}
	return tasks.longest
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

// alone returns the median time in ms from scheduling a single closure to having its value.
func (f *queueFlood) alone(times int) time.Duration {
	took, err := measure.Lone(f.b.Context(), f.c, times)
	require.NoError(f.b, err)
	return took.Median()
}

// flood returns the number of closures in a second.
func (f *queueFlood) flood(count int) float64 {
	rate, err := measure.Flood(f.b.Context(), f.c, count)
	require.NoError(f.b, err)
	return rate
}

// memory returns the memory of the host worker and the workflow worker, which are one process
// here.
func (f *queueFlood) memory() float64 { return residentMiB([]int{f.worker.Side()}) }
