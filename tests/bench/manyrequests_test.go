package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkManyRequests measures requests to all tasks on many simulated hosts, and the tasks'
// barriers.
func BenchmarkManyRequests(b *testing.B) {
	crowds(b, "1000x1", func(c *crowd) {
		run := c.launch()
		names := make([]string, c.hosts*c.each)
		for i := range names {
			names[i] = spec.TaskName("worker", i)
		}
		c.barriers(run, names)
		c.request(run, "signal", append(append([]string{"signal", "many"}, names...), "SIGUSR1")...)
		c.request(run, "stacks", "stacks", "many")
		c.request(run, "restart", append([]string{"restart", "many"}, names...)...)
		c.request(run, "stop", "stop", "many", "--wait")
	})
}

// request measures a command.
func (c *crowd) request(run client.WorkflowRun, what string, args ...string) {
	c.b.Helper()
	before, events := c.sample(), c.events(run)
	p := c.server.StartCLI(c.b, args...)
	require.True(c.b, p.EndsWithin(20*time.Minute), what)
	c.noteSince(before, what)
	c.note(float64(p.ExitCode()), "exit/"+what)
	c.note(float64(len(p.Stdout())+len(p.Stderr())), "bytes/"+what)
	c.note(float64(c.events(run)-events), "events/"+what)
	c.b.Logf("%s\n%.2000s\n%.2000s", what, p.Stdout(), p.Stderr())
}

func (c *crowd) events(run client.WorkflowRun) int64 {
	c.b.Helper()
	d, err := c.client.DescribeWorkflowExecution(c.b.Context(), run.GetID(), run.GetRunID())
	require.NoError(c.b, err)
	return d.GetWorkflowExecutionInfo().GetHistoryLength()
}

// barriers measures barriers that all tasks pass.
func (c *crowd) barriers(run client.WorkflowRun, names []string) {
	c.b.Helper()
	hosts := make([]*barriers.Barriers, c.hosts)
	for i, h := range c.all {
		own := barriers.New(barriers.Config{
			Server: server.NewBarriers(h.connection, spec.TaskQueue), Host: h.name,
			Queue: spec.InstanceQueue(spec.TaskQueue, h.name, h.instance), StateDir: c.b.TempDir(), Log: zap.NewNop(),
		})
		defer own.Close()
		hosts[i] = own
	}
	of := spec.RunRef{WorkflowID: run.GetID(), RunID: run.GetRunID()}
	for round := range 3 {
		before := c.sample()
		ctx, cancel := context.WithTimeout(c.b.Context(), 10*time.Minute)
		errs := make([]error, len(names))
		var wg sync.WaitGroup
		for i, task := range names {
			h := i / c.each
			wg.Go(func() {
				_, errs[i] = hosts[h].Arrive(ctx, barriers.Arrival{
					Run: of, Task: task, Name: "epoch", Key: strconv.Itoa(round), Participants: names, Here: names[h*c.each : (h+1)*c.each],
				})
			})
		}
		wg.Wait()
		cancel()
		for _, err := range errs {
			require.NoError(c.b, err)
		}
		c.noteSince(before, fmt.Sprint("barrier-", round))
	}
}
