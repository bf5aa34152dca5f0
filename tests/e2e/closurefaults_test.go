package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// squares schedules the squares of numbers and checks all values.
type squares struct {
	f      *fixture
	from   int
	values []*clustercoordinator.RemoteValue
}

func (f *fixture) squares(c *clustercoordinator.Coordinator, from, n int, seconds float64) *squares {
	f.t.Helper()
	s := &squares{f: f, from: from}
	ctx := bounded(f.t)
	for i := range n {
		v := must.Get(c.Schedule(ctx, "square", from+i, seconds))(f.t)
		s.values = append(s.values, v)
	}
	return s
}

// called returns the number of squares called at least once.
func (s *squares) called() int {
	n, calls := 0, s.f.calls()
	for i := range s.values {
		if calls[fmt.Sprintf("square %d", s.from+i)] > 0 {
			n++
		}
	}
	return n
}

func (s *squares) awaitCalled(n int) {
	s.f.t.Helper()
	harness.Eventually(s.f.t, fmt.Sprintf("%d closures were called", n), func() bool { return s.called() >= n })
}

// check checks that every value is correct and every closure was called.
func (s *squares) check(c *clustercoordinator.Coordinator) {
	t := s.f.t
	t.Helper()
	require.NoError(t, c.Join(bounded(t)))
	ctx := bounded(t)
	for i, v := range s.values {
		got := must.Get(clustercoordinator.Get[int](ctx, v))(t)
		require.Equal(t, (s.from+i)*(s.from+i), got)
	}
	s.checkCalls()
}

func (s *squares) checkCalls() {
	t := s.f.t
	t.Helper()
	require.Equal(t, len(s.values), s.called(), "each was called at least once")
	total, calls := 0, s.f.calls()
	for i := range s.values {
		total += calls[fmt.Sprintf("square %d", s.from+i)]
	}
	t.Logf("%d closures, %d calls", len(s.values), total)
}

// If any part dies amid many closures, each closure is called at least once, and every value is
// correct.
func TestClosureFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.serve(2)
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	n, slow := 5000, 0.002
	if testing.Short() {
		n, slow = 200, 0.02
	}

	t.Run("the Temporal side", func(t *testing.T) {
		s := f.squares(c, 20_000, n, slow)
		for round, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
			s.awaitCalled((round + 1) * n / 5)
			side := f.worker.Side()
			require.NoError(t, syscall.Kill(side, signal))
			harness.Eventually(t, "there is another side", func() bool { s := f.worker.Side(); return s != side && s != 0 })
		}
		s.check(c)
	})
	t.Run("the server", func(t *testing.T) {
		s := f.squares(c, 30_000, n, slow)
		for round := range 2 {
			s.awaitCalled((round + 1) * n / 4)
			f.KillAndRestart(time.Second)
		}
		s.check(c)
	})
	t.Run("the coordinator", func(t *testing.T) {
		dying := f.coordinator(run)
		s := f.squares(dying, 40_000, n, slow)
		require.NoError(t, dying.Flush(bounded(t)))
		dying.Close()
		next := f.coordinator(run)
		require.NoError(t, next.Join(bounded(t)))
		s.checkCalls()
	})
	f.checkQueue(c, 3*n)
	t.Run("processes that die", func(t *testing.T) { testPreempted(t, f, c) })
	t.Run("values and errors", func(t *testing.T) {
		v := must.Get(c.ScheduleWith(bounded(t), "echo", []any{nil, "ü"}, map[string]any{"a": []int{1}}))(t)
		assert.Equal(t, []any{[]any{nil, "ü"}, map[string]any{"a": []any{1.0}}}, fetched[any](t, v))
		e := fetchError(t, schedule(t, c, "fail"))
		assert.Equal(t, "ValueError", e.Kind)
		assert.Contains(t, e.Traceback, "serve.py")
		require.ErrorAs(t, c.Join(bounded(t)), &e)
		require.NoError(t, c.Join(bounded(t)))
	})
	t.Run("the run ends", func(t *testing.T) { testTheRunOfClosuresEnds(t, f, run, c) })
}

// testPreempted kills the serving processes.
func testPreempted(t *testing.T, f *fixture, c *clustercoordinator.Coordinator) {
	kill := func(tasks ...string) {
		t.Helper()
		for _, task := range tasks {
			for _, pid := range f.servers(task) {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		}
	}
	for _, test := range []struct {
		name   string
		killed [][]string
	}{
		{"CC-69 two workers", [][]string{{"worker-0", "worker-1"}}},
		{"CC-70 again and again", [][]string{{"worker-0"}, {"worker-0"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.awaitServing(c, 2)
			release := strings.ReplaceAll(test.name, " ", "-")
			var values []*clustercoordinator.RemoteValue
			for range 10 {
				values = append(values, schedule(t, c, "hold", release))
			}
			for round, tasks := range test.killed {
				f.called("hold "+release, 2+round)
				harness.Eventually(t, "all that are to be killed live", func() bool { return len(f.servers("worker-0")) == 1 && len(f.servers("worker-1")) == 1 })
				done := must.Get(c.Done(bounded(t)))(t)
				assert.False(t, done)
				kill(tasks...)
			}
			touch(t, f, release)
			require.NoError(t, c.Join(bounded(t)))
			for _, v := range values {
				assert.Equal(t, release, fetched[string](t, v))
			}
			assert.GreaterOrEqual(t, f.calls()["released "+release], 10)
		})
	}
}

// awaitClosed waits until the queue has closed, and returns how it closed.
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

// If a run finishes while closures are being called and thousands are waiting, no client hangs, all
// get an error, and the queue is not left behind.
func testTheRunOfClosuresEnds(t *testing.T, f *fixture, run client.WorkflowRun, c *clustercoordinator.Coordinator) {
	before := f.status(c).Counts.Cancelled
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
	if err == nil { // Schedule may send it later, when the end is known
		_, err = late.JSON(ctx)
	}
	require.ErrorContains(t, err, "ended")
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, awaitClosed(t, f.client, c.QueueID()))
	var result closure.QueueResult
	require.NoError(t, f.client.GetWorkflow(ctx, c.QueueID(), "").Get(ctx, &result))
	assert.EqualValues(t, n, result.Counts.Cancelled-before)
	assert.Zero(t, result.Counts.Queued+result.Counts.Executing)
}

// checkQueue checks that the queue counted n closures, and that its workflow tasks failed only if
// a part was killed.
func (f *fixture) checkQueue(c *clustercoordinator.Coordinator, n int) closure.QueueStatus {
	t := f.t
	t.Helper()
	s := f.status(c)
	assert.EqualValues(t, n, s.Counts.Finished)
	assert.EqualValues(t, n, s.Counts.Scheduled)
	events, failed, executions := 0, map[string]int{}, f.executionsOf(c)
	for _, x := range executions {
		it := f.client.GetWorkflowHistory(t.Context(), c.QueueID(), x, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for it.HasNext() {
			e := must.Get(it.Next())(t)
			events++
			if a := e.GetWorkflowTaskFailedEventAttributes(); a != nil {
				failed[a.GetCause().String()]++
				assert.True(t, ofKilledPart(a), "a workflow task failed: %v", a)
			}
		}
	}
	t.Logf("%d closures, %d lost, %d executions, %d events, workflow tasks that failed: %v",
		s.Counts.Finished, s.Counts.Lost, len(executions), events, failed)
	return s
}

// executionsOf returns a queue's executions, latest first.
func (f *fixture) executionsOf(c *clustercoordinator.Coordinator) (all []string) {
	t := f.t
	t.Helper()
	for next := ""; ; {
		it := f.client.GetWorkflowHistory(t.Context(), c.QueueID(), next, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		started := must.Get(it.Next())(t).GetWorkflowExecutionStartedEventAttributes()
		all = append(all, started.GetOriginalExecutionRunId())
		if next = started.GetContinuedExecutionRunId(); next == "" {
			return all
		}
	}
}

// ofKilledPart reports whether a workflow task failed because a part was killed, rather than by a
// workflow bug. A restarted server does not know its workers, and a worker may have requested the
// history in vain. A worker that reads the history for an update's workflow task may find it
// without that task's events, which the server writes later.
func ofKilledPart(failed *historypb.WorkflowTaskFailedEventAttributes) bool {
	switch failed.GetCause() {
	case enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE, enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND:
		return true
	case enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE:
		// A panic's error type is PanicError.
		return strings.Contains(failed.GetFailure().GetMessage(), "premature end of stream") || slices.Contains([]string{"Unavailable", "DeadlineExceeded"}, failed.GetFailure().GetApplicationFailureInfo().GetType())
	}
	return false
}
