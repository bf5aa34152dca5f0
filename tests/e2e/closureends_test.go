package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
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
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// awaitClosed waits until the queue has closed, and returns how.
func awaitClosed(t *testing.T, c client.Client, queue string) enumspb.WorkflowExecutionStatus {
	t.Helper()
	var status enumspb.WorkflowExecutionStatus
	harness.Eventually(t, "the queue of closures has closed", func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), queue, "")
		require.NoError(t, err)
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
	ends := map[string]func(run client.WorkflowRun){
		"cancelled": func(run client.WorkflowRun) {
			require.NoError(t, f.client.CancelWorkflow(t.Context(), run.GetID(), ""))
		},
		"terminated": func(run client.WorkflowRun) {
			require.NoError(t, f.client.TerminateWorkflow(t.Context(), run.GetID(), "", "test"))
		},
		"ended": func(run client.WorkflowRun) { f.update(run, spec.UpdateTerminateAll, spec.TerminateAllRequest{}) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			run := f.serve(2)
			c := f.coordinator(run)
			f.awaitServing(c, 2)
			const n = 3000
			ctx := bounded(t)
			var values []*clustercoordinator.RemoteValue
			for range n {
				v, err := c.Schedule(ctx, "hold", "never-"+name)
				require.NoError(t, err)
				values = append(values, v)
			}
			require.NoError(t, c.Queue().Flush(ctx))
			f.called("hold never-"+name, 2)
			joined := make(chan error, 1)
			go func() { joined <- c.Join(ctx) }()
			end(run)
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
			require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, awaitClosed(t, f.client, c.Queue().ID()))
			var result closure.QueueResult
			require.NoError(t, f.client.GetWorkflow(ctx, c.Queue().ID(), "").Get(ctx, &result))
			assert.EqualValues(t, n, result.Counts.Cancelled)
			assert.Zero(t, result.Counts.Queued+result.Counts.Executing)
		})
	}
}

// A coordinator's queue ends with its run even if no task of the run serves, or the run had no
// host yet.
func TestAQueueThatNobodyServesEndsWithItsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, test := range map[string]struct {
		spec *spec.RunSpec
		end  bool
	}{
		"no task serves": {&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, "echo up > $DIR/up; exec sleep 10000")}}, true},
		"no host": {&spec.RunSpec{PlacementTimeout: spec.DurationOf(2 * time.Second), Tasks: []spec.TaskGroup{
			{Type: "ps", Addresses: []string{"nowhere:2222"}, Command: []string{"true"}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := f.start(test.spec)
			c := f.coordinator(run)
			v := schedule(t, c, "square", 1)
			require.NoError(t, c.Queue().Flush(bounded(t)))
			if test.end {
				f.file("up")
				f.end(run)
			}
			assert.Contains(t, fetchError(t, v).Message, "ended")
			assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, awaitClosed(t, f.client, c.Queue().ID()))
		})
	}
}

// If the owner of a run is killed with its host worker, the next command ends the run and its queue,
// which have no worker left.
func TestTheOwnerOfClosuresIsKilled(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
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
	c, err := clustercoordinator.New(t.Context(), starter.Get(f.client, "owned", ""))
	require.NoError(t, err)
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
	assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, awaitClosed(t, f.client, c.Queue().ID()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = v.JSON(ctx)
	assert.ErrorContains(t, err, "ended")
}
