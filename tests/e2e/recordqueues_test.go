package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TestRecordBarriers is TestRecordHistories for rounds of barriers.
func TestRecordBarriers(t *testing.T) {
	dir := recordDir(t)
	p := newMeetingPlace(t, 2)
	c := p.Client()
	record := func(name string) {
		run := c.GetWorkflow(t.Context(), spec.BarrierID(p.run, name, 0), "")
		require.NoError(t, run.Get(t.Context(), nil))
		writeHistory(t, &fixture{client: c}, run, filepath.Join(dir, name+".json"))
	}
	// The run of these barriers has to live, or the check would break them. It is not a
	// clusterrun run and does not answer, so the check is retried again and again.
	run, err := c.SignalWithStartWorkflow(t.Context(), "run", spec.SignalArrive, spec.BarrierMessage{}, client.StartWorkflowOptions{ID: "run", TaskQueue: p.queue}, spec.BarrierWorkflowType,
		spec.BarrierInput{Participants: []string{"nobody"}})
	require.NoError(t, err)
	p.run = spec.RunRef{WorkflowID: "run", RunID: run.GetRunID()}
	checked := func(name string) {
		harness.Eventually(t, "the check is under way", func() bool {
			d, err := c.DescribeWorkflowExecution(t.Context(), spec.BarrierID(p.run, name, 0), "")
			return err == nil && len(d.GetPendingActivities()) == 1
		})
	}

	first := p.arrive(t.Context(), p.arrival(0, "barrier-released", "a"))
	p.awaitWaiting("barrier-released", 0, 1)
	p.released(p.arrive(t.Context(), p.arrival(1, "barrier-released", "b")), 0)
	p.released(first, 0)
	record("barrier-released")

	a := p.arrival(0, "barrier-timeout", "a")
	a.Timeout = 2 * time.Second
	require.Error(t, p.await(p.arrive(t.Context(), a)).err)
	record("barrier-timeout")

	ctx, die := context.WithCancel(t.Context())
	first = p.arrive(ctx, p.arrival(0, "barrier-restarted", "a"))
	checked("barrier-restarted")
	die()
	require.Error(t, p.await(first).err)
	p.awaitWaiting("barrier-restarted", 0, 0)
	second := p.arrive(t.Context(), p.arrival(1, "barrier-restarted", "b"))
	first = p.arrive(t.Context(), p.arrival(0, "barrier-restarted", "a again"))
	p.released(first, 0)
	p.released(second, 0)
	record("barrier-restarted")

	first = p.arrive(t.Context(), p.arrival(0, "barrier-run-ended", "a"))
	checked("barrier-run-ended")
	require.NoError(t, c.TerminateWorkflow(t.Context(), "run", "", "test"))
	require.Error(t, p.await(first).err)
	record("barrier-run-ended")
}

// TestRecordBarrierContinued writes the histories of a round whose first execution continued as
// new, while one task waited and another came and went.
func TestRecordBarrierContinued(t *testing.T) {
	dir := recordDir(t)
	p := meetingPlaceOn(t, harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=20"), 3)
	f := &fixture{t: t, client: p.Client()}
	id := spec.BarrierID(p.run, "barrier-continued", 0)
	waits := p.arrive(t.Context(), p.arrival(0, "barrier-continued", "a"))
	p.awaitWaiting("barrier-continued", 0, 1)
	d := must.Get(f.client.DescribeWorkflowExecution(t.Context(), id, ""))(t)
	first := d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	for i := 0; len(executionsOf(t, f, id, first)) == 1; i++ {
		ctx, die := context.WithCancel(t.Context())
		dies := p.arrive(ctx, p.arrival(1, "barrier-continued", fmt.Sprint("b", i)))
		p.awaitWaiting("barrier-continued", 0, 2)
		die()
		require.Error(t, p.await(dies).err)
		p.awaitWaiting("barrier-continued", 0, 1)
	}
	second := p.arrive(t.Context(), p.arrival(1, "barrier-continued", "b"))
	p.released(p.arrive(t.Context(), p.arrival(2, "barrier-continued", "c")), 0)
	p.released(second, 0)
	p.released(waits, 0)
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), id, first), filepath.Join(dir, "barrier-continued.json"))
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), id, ""), filepath.Join(dir, "barrier-continued-next.json"))
}

// TestRecordClosures is TestRecordHistories for queues of closures.
func TestRecordClosures(t *testing.T) {
	dir := recordDir(t)
	record := func(f *fixture, c *clustercoordinator.Coordinator, execution, name string) {
		run := f.client.GetWorkflow(t.Context(), c.QueueID(), execution)
		require.NoError(t, run.Get(t.Context(), nil))
		writeHistory(t, f, f.client.GetWorkflow(t.Context(), c.QueueID(), execution), filepath.Join(dir, name+".json"))
	}

	// Values, errors of every kind, a drain, cancellations, and the end of the
	// run with closures that wait.
	f := newFixture(t)
	run := f.serve(2)
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	r := must.Get(c.CreatePerWorkerResource("counter", 1))(t)
	schedule(t, c, "count", r)
	for i := range 20 {
		schedule(t, c, "square", i)
	}
	require.NoError(t, c.Join(bounded(t)))
	c.Release(r)
	require.Error(t, fetchError(t, schedule(t, c, "fail")))
	require.Error(t, c.Join(bounded(t)))
	long := schedule(t, c, "hold", "never")
	f.called("hold never", 1)
	schedule(t, c, "fail")
	require.Error(t, c.Join(bounded(t)))
	require.Error(t, fetchError(t, long))
	require.Equal(t, closure.ErrQuarantined, fetchError(t, schedule(t, c, "die")).Kind)
	require.Error(t, c.Join(bounded(t)))
	schedule(t, c, "hold", "for-ever")
	f.called("hold for-ever", 1)
	f.end(run)
	record(f, c, "", "closures")

	// Executions that continued as new: the first, one between, and the last.
	f = fixtureOn(t, harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=60"))
	run = f.serve(2)
	c = f.coordinator(run)
	f.awaitServing(c, 2)
	held := schedule(t, c, "hold", "long")
	f.called("hold long", 1)
	var executions []string
	for from := 0; len(executions) < 3; from += 200 {
		f.squares(c, 1000+from, 200, 0.002)
		require.NoError(t, c.Flush(bounded(t)))
		executions = f.executionsOf(c)
	}
	touch(t, f, "long")
	require.NoError(t, c.Join(bounded(t)))
	fetched[string](t, held)
	f.end(run)
	record(f, c, executions[len(executions)-1], "closures-continued")
	record(f, c, executions[len(executions)-2], "closures-continued-next")
	record(f, c, "", "closures-continued-last")

	// A host that does not come back.
	f = newFixture(t)
	b := f.StartWorker(t, "--host-name", "host-b")
	run = f.serveOn(spec.RunSpec{}, "host-a:28431", "host-b:28432")
	c = f.coordinator(run)
	f.awaitServing(c, 2)
	schedule(t, c, "hold", "lost")
	schedule(t, c, "hold", "lost")
	f.called("hold lost", 2)
	b.KillWithSide()
	for _, pid := range f.servers("worker-1") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	touch(t, f, "lost")
	require.NoError(t, c.Join(bounded(t)))
	require.NoError(t, f.client.TerminateWorkflow(t.Context(), run.GetID(), "", "test"))
	awaitClosed(t, f.client, c.QueueID())
	record(f, c, "", "closures-lost")

	// A restarted host worker waits for its calls again.
	f = newFixture(t)
	run = f.serve(1)
	c = f.coordinator(run)
	f.awaitServing(c, 1)
	held = schedule(t, c, "hold", "anew")
	f.called("hold anew", 1)
	side := f.worker.Side()
	require.NoError(t, syscall.Kill(side, syscall.SIGKILL))
	harness.Eventually(t, "there is another side", func() bool { s := f.worker.Side(); return s != side && s != 0 })
	harness.Eventually(t, "the host has the call again", func() bool { return f.attempts(c) >= 2 })
	touch(t, f, "anew")
	fetched[string](t, held)
	f.end(run)
	record(f, c, "", "closures-anew")
}

// TestRecordTwoCoordinators records a queue with a join that waits while another
// coordinator schedules.
func TestRecordTwoCoordinators(t *testing.T) {
	dir := recordDir(t)
	f := newFixture(t)
	run := f.serve(2)
	c, d := f.coordinator(run), f.coordinator(run)
	f.awaitServing(c, 2)
	held := schedule(t, c, "hold", "joined")
	f.called("hold joined", 1)
	joined := make(chan error, 1)
	go func() { joined <- c.Join(bounded(t)) }()
	harness.Eventually(t, "the join waits", func() bool { return f.accepted(c, closure.UpdateJoin) == 1 })
	other := schedule(t, d, "square", 3)
	harness.Eventually(t, "both have scheduled", func() bool { return f.accepted(c, closure.UpdateSchedule) == 2 })
	touch(t, f, "joined")
	require.NoError(t, <-joined)
	fetched[string](t, held)
	fetched[int](t, other)
	f.end(run)
	require.NoError(t, f.client.GetWorkflow(t.Context(), c.QueueID(), "").Get(t.Context(), nil))
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), c.QueueID(), ""), filepath.Join(dir, "closures-two-coordinators.json"))
}

// attempts returns the attempts of the pending batch of a queue.
func (f *fixture) attempts(c *clustercoordinator.Coordinator) (n int32) {
	d := must.Get(f.client.DescribeWorkflowExecution(f.t.Context(), c.QueueID(), ""))(f.t)
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() == closure.ActivityRunClosures && a.GetLastWorkerIdentity() != "" {
			n = max(n, a.GetAttempt())
		}
	}
	return n
}

// accepted counts the updates of a name that the latest execution of a queue has taken.
func (f *fixture) accepted(c *clustercoordinator.Coordinator, update string) int {
	f.t.Helper()
	return f.countEvents(c, func(e *historypb.HistoryEvent) bool {
		return e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName() == update
	})
}

func (f *fixture) countEvents(c *clustercoordinator.Coordinator, counts func(*historypb.HistoryEvent) bool) int {
	f.t.Helper()
	n := 0
	it := f.client.GetWorkflowHistory(f.t.Context(), c.QueueID(), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e := must.Get(it.Next())(f.t)
		if counts(e) {
			n++
		}
	}
	return n
}
