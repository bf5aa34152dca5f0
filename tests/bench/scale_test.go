package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkScale measures a run of many sleeping tasks on many host workers, from submission
// until every process executes its program. It compares with a bare tree of workflows, a child
// for each host, that starts as many no-op activities on the same server. Goals: 512 tasks on 8
// hosts in 1.5 s; 2,000 on 50 in 8 s and 1.6 times the floor, with at most 600 events in the
// workflow of the run and 300 in each of its groups.
//
// CLUSTERRUN_SCALE replaces the sizes: "tasks@hosts,…".
func BenchmarkScale(b *testing.B) {
	sizes := "512@8,2000@50"
	if s := os.Getenv("CLUSTERRUN_SCALE"); s != "" {
		sizes = s
	}
	for size := range strings.SplitSeq(sizes, ",") {
		var tasks, hosts int
		_, err := fmt.Sscanf(size, "%d@%d", &tasks, &hosts)
		require.NoError(b, err)
		b.Run(fmt.Sprintf("tasks=%d/hosts=%d", tasks, hosts), func(b *testing.B) {
			f := newFleet(b, hosts, (tasks+hosts-1)/hosts)
			const rounds = 3
			var ours, floor []time.Duration
			var parent, group, ended int
			for range rounds {
				floor = append(floor, bareTree(b, f.client, tasks, hosts))
				took, run := f.launch(tasks)
				ours = append(ours, took)
				parent, group = f.events(run)
				b.ReportMetric(f.resident(), "MiB/hosts")
				f.stop(run)
				ended, _ = f.events(run)
			}
			b.ReportMetric(ms(median(ours)), "ms/launch")
			b.ReportMetric(ms(median(floor)), "ms/floor")
			b.ReportMetric(ms(median(ours))/ms(median(floor)), "of-floor")
			b.ReportMetric(float64(parent), "events/run")
			b.ReportMetric(float64(ended), "events/ended-run")
			b.ReportMetric(float64(group), "events/group")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// fleetFixture is a server with many host workers.
type fleetFixture struct {
	*fixture
	workers []*harness.Worker
}

func newFleet(b *testing.B, hosts, slots int) *fleetFixture {
	b.Helper()
	s := harness.StartServer(b, "--headless")
	f := &fleetFixture{fixture: &fixture{Server: s, b: b, client: s.Client(), dir: b.TempDir()}}
	for i := range hosts {
		f.workers = append(f.workers, s.StartWorker(b, "--host-name", fmt.Sprint("h", i), "--slots", strconv.Itoa(slots)))
	}
	harness.Eventually(b, "the fleet has all hosts", func() bool {
		code, stdout, _ := s.CLI(b, "host", "list", "--json")
		return code == 0 && strings.Count(stdout, `"instance"`) == hosts
	})
	return f
}

// launch starts a run and returns it, and how long it took until every process had begun.
func (f *fleetFixture) launch(tasks int) (time.Duration, client.WorkflowRun) {
	f.b.Helper()
	pipe := newFIFO(f.b, f.dir)
	s := &spec.RunSpec{
		Stop:  spec.Stop{Signal: "SIGKILL"},
		Tasks: []spec.TaskGroup{{Type: "worker", Count: count(tasks), Command: []string{"/bin/sh", "-c", `printf x > "$FIFO"; exec sleep 1000`}}},
		Env:   spec.EnvOf(map[string]string{"FIFO": pipe.path}),
	}
	started := time.Now()
	run := f.start(s)
	return pipe.await(f.b, tasks).Sub(started), run
}

// events returns the number of history events of a run, and the largest number of one of its
// groups.
func (f *fleetFixture) events(run client.WorkflowRun) (own, group int) {
	f.b.Helper()
	ctx := context.Background()
	it := f.client.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		require.NoError(f.b, err)
		own++
		if c := e.GetChildWorkflowExecutionStartedEventAttributes(); c != nil {
			d, err := f.client.DescribeWorkflowExecution(ctx, c.GetWorkflowExecution().GetWorkflowId(), c.GetWorkflowExecution().GetRunId())
			require.NoError(f.b, err)
			group = max(group, int(d.GetWorkflowExecutionInfo().GetHistoryLength()))
		}
	}
	return own, group
}

// resident returns the memory of all host workers, in MiB.
func (f *fleetFixture) resident() float64 {
	var pids []int
	for _, w := range f.workers {
		pids = append(pids, w.Cmd.Process.Pid, w.Side())
	}
	return residentMiB(pids)
}

// bareTree measures the floor: a workflow with a child for each host, whose queue is served by
// a client of its own, with only the server and the SDK.
func bareTree(b *testing.B, c client.Client, tasks, hosts int) time.Duration {
	queue := fmt.Sprintf("tree-%d", time.Now().UnixNano())
	var running atomic.Int64
	all := make(chan time.Time, 1)
	flows := worker.New(c, queue, worker.Options{LocalActivityWorkerOnly: true})
	flows.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{})
		futures := make([]workflow.Future, hosts)
		for i := range futures {
			n := tasks*(i+1)/hosts - tasks*i/hosts
			futures[i] = workflow.ExecuteChildWorkflow(ctx, "branch", fmt.Sprint(queue, "/", i), n)
		}
		return getAll(ctx, futures)
	}, workflow.RegisterOptions{Name: "tree"})
	flows.RegisterWorkflowWithOptions(func(ctx workflow.Context, host string, n int) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: host, StartToCloseTimeout: time.Minute})
		futures := make([]workflow.Future, n)
		for i := range futures {
			futures[i] = workflow.ExecuteActivity(ctx, "noop")
		}
		return getAll(ctx, futures)
	}, workflow.RegisterOptions{Name: "branch"})
	require.NoError(b, flows.Start())
	defer flows.Stop()
	for i := range hosts {
		w := worker.New(c, fmt.Sprint(queue, "/", i), worker.Options{DisableWorkflowWorker: true})
		w.RegisterActivityWithOptions(func(context.Context) error {
			if running.Add(1) == int64(tasks) {
				all <- time.Now()
			}
			return nil
		}, activity.RegisterOptions{Name: "noop"})
		require.NoError(b, w.Start())
		defer w.Stop()
	}
	started := time.Now()
	run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "tree")
	require.NoError(b, err)
	took := (<-all).Sub(started)
	require.NoError(b, run.Get(context.Background(), nil))
	return took
}

func getAll(ctx workflow.Context, futures []workflow.Future) error {
	for _, f := range futures {
		if err := f.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}
