package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// awaitClosed waits until the queue has closed, and returns how.
func awaitClosed(t *testing.T, c client.Client, queue string) enumspb.WorkflowExecutionStatus {
	t.Helper()
	var status enumspb.WorkflowExecutionStatus
	harness.Eventually(t, "the queue of closures has closed", func() bool {
		d := must.Get(c.DescribeWorkflowExecution(t.Context(), queue, ""))(t)
		status = d.GetWorkflowExecutionInfo().GetStatus()
		return d.GetWorkflowExecutionInfo().GetCloseTime() != nil
	})
	return status
}

// If a run ends while closures are called and thousands wait, no client hangs, all get an
// error, and the queue is not left behind.
func TestTheRunOfClosuresEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.serve(2)
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	const n = 3000
	ctx := bounded(t)
	var values []*clustercoordinator.RemoteValue
	for range n {
		v := must.Get(c.Schedule(ctx, "hold", "never"))(t)
		values = append(values, v)
	}
	require.NoError(t, c.Flush(ctx))
	f.called("hold never", 2)
	joined := make(chan error, 1)
	go func() { joined <- c.Join(ctx) }()
	require.NoError(t, f.client.TerminateWorkflow(t.Context(), run.GetID(), "", "test"))
	assert.ErrorContains(t, <-joined, "ended")
	for _, v := range values {
		_, err := v.JSON(ctx)
		require.ErrorContains(t, err, "ended")
	}
	late, err := c.Schedule(ctx, "square", 2)
	if err == nil { // Schedule may send it later, and the end is known then
		_, err = late.JSON(ctx)
	}
	require.ErrorContains(t, err, "ended")
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, awaitClosed(t, f.client, c.QueueID()))
	var result closure.QueueResult
	require.NoError(t, f.client.GetWorkflow(ctx, c.QueueID(), "").Get(ctx, &result))
	assert.EqualValues(t, n, result.Counts.Cancelled)
	assert.Zero(t, result.Counts.Queued+result.Counts.Executing)
}

// If the owner of a run is killed with its host worker, the next command ends the run and its queue,
// which have no worker left.
func TestTheOwnerOfClosuresIsKilled(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	python := must.Get(exec.LookPath("python3"))(t)
	home := t.TempDir()
	clusterrun := func(args ...string) *harness.Process {
		return harness.Start(t, home, harness.Env(home, "TEMPORAL_ADDRESS="+s.Address), append([]string{harness.Clusterrun(t)}, args...)...)
	}
	owner := clusterrun("run", "--id", "owned", "--env", "DIR="+home,
		"--env", "PYTHONPATH="+filepath.Join(harness.Root(), "activities/tasks/python"),
		"-n", "1", "--", python, filepath.Join(harness.Root(), "tests/e2e/testdata/closures/serve.py"))
	f := &fixture{Server: s, t: t, client: s.Client(), dir: home}
	harness.Eventually(t, "there is the run", func() bool {
		_, err := f.client.DescribeWorkflowExecution(t.Context(), "owned", "")
		return err == nil
	})
	c := must.Get(clustercoordinator.New(t.Context(), starter.Get(f.client, "owned", "")))(t)
	defer c.Close()
	v := schedule(t, c, "hold", "never")
	f.called("hold never", 1)
	// With its host worker, which would end the run in order.
	harness.Eventually(t, "all processes of the owner are gone", func() bool {
		pids := harness.Alive("HOME=" + home)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(pids) == 0
	})
	require.Equal(t, 128+int(syscall.SIGKILL), owner.ExitCode())

	next := clusterrun("run", "-n", "1", "--", "true")
	require.Zero(t, next.ExitCode(), next.Stderr())
	assert.Contains(t, next.Stderr(), "run owned was still open but its owner is gone; ended it")
	assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, awaitClosed(t, f.client, c.QueueID()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := v.JSON(ctx)
	assert.ErrorContains(t, err, "ended")
}

// serveOn starts a run with a task that serves on each host.
func (f *fixture) serveOn(s spec.RunSpec, addresses ...string) client.WorkflowRun {
	f.t.Helper()
	g := f.serving("worker", len(addresses))
	g.Count, g.Addresses = nil, addresses
	s.Tasks = []spec.TaskGroup{g}
	return f.start(&s)
}

// callers returns the number of calls of squares that each task has noted.
func (f *fixture) callers() map[string]int {
	b := must.Get(os.ReadFile(filepath.Join(f.dir, "calls")))(f.t)
	n := map[string]int{}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); fields[0] == "square" {
			n[fields[2]]++
		}
	}
	return n
}

// Closures are spread over the hosts. If a host is gone for good, the other calls its closures
// once its leases have been silent for long enough.
func TestClosuresOnTwoHosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.StartWorker(t, "--host-name", "host-b")
	run := f.serveOn(spec.RunSpec{}, "host-a:28411", "host-b:28412")
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	f.squares(c, 1000, 1000, 0.002).check(c)
	spread := f.callers()
	// How evenly is a matter of how busy the machine is.
	assert.Greater(t, spread["worker-0"], 50, spread)
	assert.Greater(t, spread["worker-1"], 50, spread)

	// The second host has two closures that do not end, and others behind them.
	held := schedule(t, c, "hold", "gone")
	held2 := schedule(t, c, "hold", "gone")
	f.called("hold gone", 2)
	s := f.squares(c, 5000, 200, 0)
	require.NoError(t, c.Flush(bounded(t)))
	b.KillWithSide()
	for _, pid := range f.servers("worker-1") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	killed := time.Now()
	touch(t, f, "gone")
	s.check(c)
	for _, v := range []*clustercoordinator.RemoteValue{held, held2} {
		assert.Equal(t, "gone", fetched[string](t, v))
	}
	t.Logf("called by the other host within %s", time.Since(killed).Round(time.Second))
	assert.Equal(t, 3, f.calls()["hold gone"])
	f.squares(c, 7000, 100, 0).check(c)

	require.NoError(t, f.client.TerminateWorkflow(t.Context(), run.GetID(), "", "test"))
	assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, awaitClosed(t, f.client, c.QueueID()))
}
