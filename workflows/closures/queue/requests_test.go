package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// queueTest is a queue of closures in the test environment. The test ends when the hosts report
// the end of the run.
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

// runClosures answers the leases of hosts.
func (q *queueTest) runClosures(answer func(closure.Lease) (closure.LeaseResult, error)) {
	q.RegisterActivityWithOptions(func(_ context.Context, l closure.Lease) (closure.LeaseResult, error) { return answer(l) },
		activity.RegisterOptions{Name: closure.ActivityRunClosures})
}

// serve signals after some time that a task serves on a host.
func (q *queueTest) serve(after time.Duration, host, broker string) {
	q.RegisterDelayedCallback(func() {
		q.SignalWorkflow(closure.SignalServing, closure.ServingMessage{
			Host: host, Queue: host, Seq: 1, Broker: broker,
			Serving: []closure.ServingTask{{Task: "worker-0", Slots: 1, Functions: []string{"f"}}},
		})
	}, after)
}

// asked is the outcome of an update.
type asked struct {
	accepted bool
	refused  error
	answer   any
	err      error
}

// ask sends an update after some time.
func (q *queueTest) ask(after time.Duration, name string, request any) *asked {
	a := &asked{}
	q.RegisterDelayedCallback(func() {
		q.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
			OnAccept:   func() { a.accepted = true },
			OnReject:   func(err error) { a.refused = err },
			OnComplete: func(answer any, err error) { a.answer, a.err = answer, err },
		}, request)
	}, after)
	return a
}

// run lives through everything, and then the run ends.
func (q *queueTest) run() {
	q.t.Helper()
	q.RegisterDelayedCallback(func() {
		q.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Over: "the test is over"})
	}, time.Hour)
	q.ExecuteWorkflow(queue.Workflow, closure.QueueInput{Run: spec.RunRef{WorkflowID: "iris", RunID: "e"}}, nil)
	require.True(q.t, q.IsWorkflowCompleted())
	require.NoError(q.t, q.GetWorkflowError())
}

// A join or done without a client is refused before it is in the history.
func TestWaitRequestsAreChecked(t *testing.T) {
	q := newQueueTest(t)
	var nobody, uncounted []*asked
	for _, name := range []string{closure.UpdateJoin, closure.UpdateDone} {
		nobody = append(nobody, q.ask(time.Second, name, closure.WaitRequest{Call: 1}))
		uncounted = append(uncounted, q.ask(time.Second, name, closure.WaitRequest{Client: "c"}))
	}
	well := q.ask(time.Second, closure.UpdateJoin, closure.WaitRequest{Client: "c", Call: 1})
	q.run()
	for i := range nobody {
		assert.False(t, nobody[i].accepted)
		assert.ErrorContains(t, nobody[i].refused, "client: missing; give the name of the client")
		assert.False(t, uncounted[i].accepted)
		assert.ErrorContains(t, uncounted[i].refused, "call: missing; count the requests of the client from 1")
	}
	require.True(t, well.accepted)
	assert.Equal(t, closure.WaitAnswer{Done: true}, well.answer)
}

// A join that is withdrawn ends, since it would keep one of the few places that a server has
// for updates. A client that still waits for it must ask again.
func TestAJoinIsTakenBack(t *testing.T) {
	q := newQueueTest(t)
	scheduled := q.ask(time.Second, closure.UpdateSchedule, closure.ScheduleRequest{Client: "c", Batch: 1, Closures: []closure.Closure{{Function: "f"}}})
	request := closure.WaitRequest{Client: "c", Call: 1}
	join := q.ask(2*time.Second, closure.UpdateJoin, request)
	withdrawn := q.ask(3*time.Second, closure.UpdateWithdraw, request)
	q.RegisterDelayedCallback(func() {
		var app *temporal.ApplicationError
		require.ErrorAs(t, join.err, &app)
		assert.Equal(t, spec.ErrTryAgain, app.Type())
	}, 4*time.Second)
	again := q.ask(5*time.Second, closure.UpdateWithdraw, request)
	q.run()
	assert.EqualValues(t, 1, scheduled.answer.(closure.ScheduleAnswer).First)
	assert.Equal(t, closure.WithdrawAnswer{Withdrawn: true}, withdrawn.answer)
	assert.Equal(t, closure.WithdrawAnswer{}, again.answer)
}

// A host that died for good has closures only until its death is noticed. Then they wait for
// another host.
func TestAHostThatDiedForGood(t *testing.T) {
	q := newQueueTest(t)
	lost, alive := 0, false
	q.runClosures(func(l closure.Lease) (closure.LeaseResult, error) {
		if !alive {
			lost++
			return closure.LeaseResult{}, temporal.NewNonRetryableApplicationError("nobody is there", "Lost", nil)
		}
		return closure.LeaseResult{Outcomes: []closure.Outcome{{ID: l.Closures[0].ID}}}, nil
	})
	q.serve(time.Second, "host-a", "1")
	q.ask(2*time.Second, closure.UpdateSchedule, closure.ScheduleRequest{Client: "c", Batch: 1, Closures: []closure.Closure{{Function: "f"}}})
	join := q.ask(3*time.Second, closure.UpdateJoin, closure.WaitRequest{Client: "c", Call: 1})
	q.RegisterDelayedCallback(func() {
		assert.Equal(t, 2, lost)
		assert.Nil(t, join.answer)
		alive = true
	}, time.Minute)
	q.serve(2*time.Minute, "host-a", "2")
	q.run()
	assert.Equal(t, 2, lost)
	assert.Equal(t, closure.WaitAnswer{Done: true}, join.answer)
}
