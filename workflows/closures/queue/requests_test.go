package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// queueTest is a closure queue in the test environment. The test ends when the hosts report the
// end of the run.
type queueTest struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T
}

func newQueueTest(t *testing.T) *queueTest {
	var suite testsuite.WorkflowTestSuite
	q := &queueTest{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	q.RegisterActivityWithOptions(func(context.Context, closure.CheckInput) (closure.CheckOutput, error) {
		return closure.CheckOutput{}, errors.New("the run is open")
	}, activity.RegisterOptions{Name: closure.ActivityClosuresCheck})
	return q
}

// runClosures answers the batches.
func (q *queueTest) runClosures(answer func(context.Context, closure.Batch) (closure.BatchResult, error)) {
	q.RegisterActivityWithOptions(answer, activity.RegisterOptions{Name: closure.ActivityRunClosures})
}

// serve signals, after some time, that a task serves on a host.
func (q *queueTest) serve(after time.Duration, host string) {
	q.RegisterDelayedCallback(func() {
		q.SignalWorkflow(closure.SignalServing, closure.ServingMessage{
			Host: host, Queue: host, Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 1}},
		})
	}, after)
}

// asked is an update's outcome.
type asked struct {
	accepted bool
	refused  error
	answer   any
	err      error
}

// ask sends an update after some time.
func (q *queueTest) ask(after time.Duration, request closure.SyncRequest) *asked {
	a := &asked{}
	q.RegisterDelayedCallback(func() {
		q.UpdateWorkflow(closure.UpdateSync, "", &testsuite.TestUpdateCallback{
			OnAccept:   func() { a.accepted = true },
			OnReject:   func(err error) { a.refused = err },
			OnComplete: func(answer any, err error) { a.answer, a.err = answer, err },
		}, request)
	}, after)
	return a
}

// run executes everything, and then finishes the run.
func (q *queueTest) run() {
	q.t.Helper()
	q.RegisterDelayedCallback(func() {
		q.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Over: "the test is over"})
	}, time.Hour)
	q.ExecuteWorkflow(queue.Workflow, closure.QueueInput{Run: spec.RunRef{WorkflowID: "iris", RunID: "e"}}, nil)
	require.True(q.t, q.IsWorkflowCompleted())
	require.NoError(q.t, q.GetWorkflowError())
}

func schedules(functions ...string) closure.SyncRequest {
	r := closure.SyncRequest{Client: "c", First: 1}
	for _, f := range functions {
		r.Closures = append(r.Closures, closure.Closure{Function: f})
	}
	return r
}

// An invalid request is refused before it enters the history.
func TestRequestsAreChecked(t *testing.T) {
	q := newQueueTest(t)
	nobody := q.ask(time.Second, closure.SyncRequest{})
	well := q.ask(time.Second, closure.SyncRequest{Client: "c", Join: true, Wait: true})
	q.run()
	assert.False(t, nobody.accepted)
	assert.ErrorContains(t, nobody.refused, "client: missing; give the client a random name")
	require.True(t, well.accepted)
	assert.True(t, well.answer.(closure.SyncAnswer).Done)
}

// After the run has finished, waiting requests are refused with the reason.
func TestWaitingRequestsEndWithTheRun(t *testing.T) {
	q := newQueueTest(t)
	q.ask(time.Second, schedules("f"))
	join := q.ask(2*time.Second, closure.SyncRequest{Client: "c", Join: true, Wait: true})
	q.run()
	var app *temporal.ApplicationError
	require.ErrorAs(t, join.err, &app)
	assert.Equal(t, closure.ErrQueueEnded, app.Type())
	assert.Equal(t, "the run has ended: the test is over", app.Message())
}

// A lost host's batch is given again.
func TestABatchThatFailsIsGivenAgain(t *testing.T) {
	q := newQueueTest(t)
	lost := 0
	q.runClosures(func(_ context.Context, b closure.Batch) (closure.BatchResult, error) {
		if lost < 3 {
			lost++
			return closure.BatchResult{}, temporal.NewNonRetryableApplicationError("nobody is there", "Lost", nil)
		}
		assert.Equal(t, spec.RunRef{WorkflowID: "iris", RunID: "e"}, b.Run)
		return closure.BatchResult{Outcomes: []closure.Outcome{{ID: b.Closures[0].ID}}}, nil
	})
	q.serve(time.Second, "host-a")
	q.ask(2*time.Second, schedules("f"))
	join := q.ask(3*time.Second, closure.SyncRequest{Client: "c", Join: true, Wait: true})
	q.run()
	answer := join.answer.(closure.SyncAnswer)
	assert.True(t, answer.Done)
	assert.Equal(t, []closure.Outcome{{ID: 1}}, answer.Outcomes)
}

// An error cancels the remaining batches. A call then has time to return.
func TestAnErrorCancelsCalls(t *testing.T) {
	q := newQueueTest(t)
	var cancelled []closure.Batch
	q.runClosures(func(ctx context.Context, b closure.Batch) (closure.BatchResult, error) {
		switch {
		case len(b.Calling) > 0:
			assert.Equal(t, "host-a", activity.GetInfo(ctx).TaskQueue)
			cancelled = append(cancelled, b)
			return closure.BatchResult{Outcomes: []closure.Outcome{{ID: b.Calling[0], Kind: closure.OutcomeCancelled}}}, nil
		case b.Closures[0].Function == "long":
			return closure.BatchResult{Calling: []uint64{b.Closures[0].ID}, Queue: "host-a"}, nil
		}
		time.Sleep(time.Millisecond)
		return closure.BatchResult{Outcomes: []closure.Outcome{{ID: b.Closures[0].ID, Kind: closure.OutcomeError, Error: &closure.Error{Message: "no"}}}}, nil
	})
	q.serve(time.Second, "host-a")
	q.ask(2*time.Second, schedules("fails", "long"))
	q.ask(3*time.Second, closure.SyncRequest{Client: "c", Join: true, Wait: true})
	all := q.ask(time.Minute, closure.SyncRequest{Client: "c", Wait: true})
	q.run()
	require.NotNil(t, all.answer)
	raised := all.answer.(closure.SyncAnswer).Outcomes[2]
	assert.Equal(t, closure.Outcome{Kind: closure.OutcomeRaised, Error: &closure.Error{Message: "no", Closure: 1}}, raised)
	require.NotEmpty(t, cancelled)
	assert.Equal(t, []uint64{2}, cancelled[len(cancelled)-1].Calling)
}

// An execution that continues as new passes the queue on, and the next one continues with it.
func TestAQueueContinuesAsNew(t *testing.T) {
	q := newQueueTest(t)
	q.RegisterWorkflowWithOptions(queue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
	q.ask(time.Second, schedules("f", "g"))
	q.RegisterDelayedCallback(func() {
		q.SetContinueAsNewSuggested(true)
		q.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Host: "host-a", Seq: 1})
	}, time.Minute)
	in := closure.QueueInput{Run: spec.RunRef{WorkflowID: "iris", RunID: "e"}}
	q.ExecuteWorkflow(closure.QueueType, in, []byte(nil))
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, q.GetWorkflowError(), &next)
	var again closure.QueueInput
	var packed []byte
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &again, &packed))
	assert.Equal(t, in, again)

	q = newQueueTest(t)
	q.runClosures(func(_ context.Context, b closure.Batch) (closure.BatchResult, error) {
		return closure.BatchResult{Outcomes: []closure.Outcome{{ID: b.Closures[0].ID, Value: []byte("7")}}}, nil
	})
	q.serve(time.Second, "host-b")
	take := q.ask(time.Minute, closure.SyncRequest{Client: "c", Wait: true})
	q.RegisterDelayedCallback(func() {
		q.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Over: "the test is over"})
	}, time.Hour)
	q.ExecuteWorkflow(queue.Workflow, in, packed)
	require.NoError(t, q.GetWorkflowError())
	assert.Len(t, take.answer.(closure.SyncAnswer).Outcomes, 2)

	q = newQueueTest(t)
	q.ExecuteWorkflow(queue.Workflow, in, packed[:10])
	assert.ErrorContains(t, q.GetWorkflowError(), "cannot read the queue")
}
