package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkLaunch is from submission to every process executing its program,
// against a bare workflow that starts as many no-op activities on the same
// server. Goal: floor + 20 ms + 2 ms per process and core.
func BenchmarkLaunch(b *testing.B) {
	f := newFixture(b)
	for _, n := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			f.b = b
			const rounds = 7
			var ours, floor []time.Duration
			for range rounds {
				floor = append(floor, bareActivities(b, f.client, n))
				ours = append(ours, f.launch(n))
			}
			goal := median(floor) + 20*time.Millisecond + time.Duration(2*n/runtime.NumCPU())*time.Millisecond
			b.ReportMetric(ms(median(ours)), "ms/launch")
			b.ReportMetric(ms(median(floor)), "ms/floor")
			b.ReportMetric(ms(goal), "ms/goal")
			b.ReportMetric(ms(median(ours))/ms(goal), "of-goal")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func (f *fixture) launch(n int) time.Duration {
	pipe := newFIFO(f.b, f.dir)
	s := &spec.RunSpec{
		Stop:  spec.Stop{Signal: "SIGKILL"},
		Tasks: []spec.TaskGroup{{Type: "worker", Count: count(n), Command: []string{"/bin/sh", "-c", `printf x > "$FIFO"; exec sleep 1000`}}},
		Env:   spec.EnvOf(map[string]string{"FIFO": pipe.path}),
	}
	started := time.Now()
	run := f.start(s)
	took := pipe.await(f.b, n).Sub(started)
	f.stop(run)
	return took
}

// bareActivities measures the floor: the same activities with only the server and the SDK.
func bareActivities(b *testing.B, c client.Client, n int) time.Duration {
	queue := fmt.Sprintf("floor-%d", time.Now().UnixNano())
	var running atomic.Int64
	all := make(chan time.Time, 1)
	w := worker.New(c, queue, worker.Options{MaxConcurrentActivityExecutionSize: 5000})
	w.RegisterActivityWithOptions(func(context.Context) error {
		if running.Add(1) == int64(n) {
			all <- time.Now()
		}
		return nil
	}, activity.RegisterOptions{Name: "noop"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, DisableEagerExecution: true})
		futures := make([]workflow.Future, n)
		for i := range futures {
			futures[i] = workflow.ExecuteActivity(ctx, "noop")
		}
		for _, f := range futures {
			if err := f.Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	}, workflow.RegisterOptions{Name: "floor"})
	require.NoError(b, w.Start())
	defer w.Stop()
	started := time.Now()
	run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "floor")
	require.NoError(b, err)
	took := (<-all).Sub(started)
	require.NoError(b, run.Get(context.Background(), nil))
	return took
}
