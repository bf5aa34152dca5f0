package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/tests/harness"
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
	d, err := f.client.DescribeWorkflowExecution(t.Context(), id, "")
	require.NoError(t, err)
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
