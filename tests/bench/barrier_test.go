package bench

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// barrierPlace is a server with hosts, each with one task.
type barrierPlace struct {
	*harness.Server
	b     *testing.B
	run   spec.RunRef
	tasks []string
	hosts []*harness.BarrierHost
	bare  []client.Client
}

const barrierQueue = "barriers"

func newBarrierPlace(b *testing.B, hosts int) *barrierPlace {
	b.Helper()
	p := &barrierPlace{Server: harness.StartServer(b, "--headless"), b: b, run: spec.RunRef{WorkflowID: "nobody", RunID: "0123abcd-0"}}
	p.BarrierWorker(b, barrierQueue)
	for i := range hosts {
		p.tasks = append(p.tasks, fmt.Sprint("worker-", i))
		p.hosts = append(p.hosts, p.StartBarrierHost(b, barrierQueue, fmt.Sprint("host-", i), b.TempDir()))
		p.bare = append(p.bare, p.Client())
	}
	return p
}

// pass lets all tasks pass a barrier once, and returns how long it took.
func (p *barrierPlace) pass(name string, round int) time.Duration {
	start := time.Now()
	p.all(func(i int) error {
		_, err := p.hosts[i].Arrive(context.Background(), barriers.Arrival{
			Run: p.run, Task: p.tasks[i], Name: name, Key: strconv.Itoa(round), Participants: p.tasks, Here: p.tasks[i : i+1],
		})
		return err
	})
	return time.Since(start)
}

func (p *barrierPlace) all(do func(i int) error) {
	errs := make([]error, len(p.tasks))
	var wg sync.WaitGroup
	for i := range p.tasks {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(p.b, err)
	}
}

// bareWorkflow is the smallest barrier by signals: it returns after n of them.
func bareWorkflow(ctx workflow.Context, n int) error {
	for range n {
		workflow.GetSignalChannel(ctx, "here").Receive(ctx, nil)
	}
	return nil
}

func (p *barrierPlace) passBare(round int) time.Duration {
	start := time.Now()
	p.all(func(i int) error {
		id := fmt.Sprint("bare-", round)
		run, err := p.bare[i].SignalWithStartWorkflow(context.Background(), id, "here", nil, client.StartWorkflowOptions{
			ID: id, TaskQueue: "bare", WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		}, "bare", len(p.tasks))
		if err != nil {
			return err
		}
		return run.Get(context.Background(), nil)
	})
	return time.Since(start)
}

// BenchmarkBarrier is a barrier over 1, 2, 10 and 50 hosts, and, turn about on the same
// server, the bare workflow that everything by signals costs at least. Asked for
// is a ratio of at most 1.5.
func BenchmarkBarrier(b *testing.B) {
	for _, hosts := range []int{1, 2, 10, 50} {
		b.Run(fmt.Sprint("hosts=", hosts), func(b *testing.B) {
			p := newBarrierPlace(b, hosts)
			w := worker.New(p.Client(), "bare", worker.Options{LocalActivityWorkerOnly: true})
			w.RegisterWorkflowWithOptions(bareWorkflow, workflow.RegisterOptions{Name: "bare"})
			require.NoError(b, w.Start())
			defer w.Stop()
			for i := range 20 {
				p.pass("warm", i)
				p.passBare(-1 - i)
			}
			var ours, bare []time.Duration
			for i := 0; b.Loop(); i++ {
				ours = append(ours, p.pass("epoch", i))
				bare = append(bare, p.passBare(i))
			}
			b.ReportMetric(ms(median(ours)), "p50-ms")
			b.ReportMetric(ms(median(bare)), "bare-p50-ms")
			b.ReportMetric(ms(median(ours))/ms(median(bare)), "ratio")
		})
	}
}

// BenchmarkTenThousandBarriers passes 10,000 barriers in one run, each with its own name, in
// each op. They use neither the history of the run nor the memory of the host worker.
func BenchmarkTenThousandBarriers(b *testing.B) {
	for b.Loop() {
		s := harness.StartServer(b, "--headless")
		w := s.StartWorker(b)
		c := s.Client()
		run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: "bench", TaskQueue: spec.TaskQueue}, spec.WorkflowType,
			&spec.RunSpec{Tasks: []spec.TaskGroup{harness.Shell("worker", 2, "exec sleep 3600")}})
		require.NoError(b, err)
		length := func() int64 {
			d, err := c.DescribeWorkflowExecution(context.Background(), run.GetID(), run.GetRunID())
			require.NoError(b, err)
			return d.GetWorkflowExecutionInfo().GetHistoryLength()
		}
		harness.Eventually(b, "the tasks run", func() bool {
			d, err := c.DescribeWorkflowExecution(context.Background(), run.GetID(), run.GetRunID())
			return err == nil && len(d.GetPendingActivities()) == 2
		})
		p := &barrierPlace{Server: s, b: b, run: spec.RunRef{WorkflowID: run.GetID(), RunID: run.GetRunID()}, tasks: []string{"worker-0", "worker-1"}}
		for i := range p.tasks {
			p.hosts = append(p.hosts, s.StartBarrierHost(b, spec.TaskQueue, fmt.Sprint("fake-", i), b.TempDir()))
		}
		const all, early = 10_000, 2_000
		start, before := time.Now(), length()
		var hosts, side float64
		done := make(chan struct{}, 16) // barriers pass side by side
		var wg sync.WaitGroup
		for i := range all {
			if i == early {
				wg.Wait()
				hosts, side = heap(), residentMiB([]int{w.Side()})
			}
			done <- struct{}{}
			wg.Go(func() {
				p.pass(fmt.Sprint("step-", i), 0)
				<-done
			})
		}
		wg.Wait()
		b.ReportMetric(float64(length()-before), "run-events")
		b.ReportMetric((heap()-hosts)/(1<<20), "heap-growth-MiB")
		b.ReportMetric(residentMiB([]int{w.Side()})-side, "side-rss-growth-MiB")
		b.ReportMetric(residentMiB([]int{w.Side()}), "side-rss-MiB")
		b.ReportMetric(ms(time.Since(start))/all, "ms/barrier")
		for _, h := range p.hosts {
			h.Close()
		}
	}
}

// heap returns the heap of this process, which contains the hosts.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
