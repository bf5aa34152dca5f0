package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/must"
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

// Texts of users are shown unchanged, and never as Markdown.
func TestDetailsFenceWhatUsersSay(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	w := suite.NewTestWorkflowEnvironment()
	w.RegisterActivityWithOptions(func(closure.CheckInput) (closure.CheckOutput, error) {
		return closure.CheckOutput{}, temporal.NewApplicationError("the run is open", "RunOpen")
	}, activity.RegisterOptions{Name: closure.ActivityClosuresCheck})
	w.RegisterDelayedCallback(func() {
		w.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Host: "<b>__full__", Queue: "q", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Process: "1", Slots: 1}}})
	}, time.Second)
	w.RegisterDelayedCallback(func() {
		v := must.Get(w.QueryWorkflow("__temporal_workflow_metadata"))(t)
		var m sdkpb.WorkflowMetadata
		require.NoError(t, v.Get(&m))
		assert.Contains(t, m.GetCurrentDetails(), "| `<b>__full__` |")
		assert.Contains(t, m.GetCurrentDetails(), "Closures of run [iris](/namespaces/default-test-namespace/workflows/iris/1-2)")
		w.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Over: "it has ended"})
	}, 2*time.Second)
	w.ExecuteWorkflow(queue.Workflow, closure.QueueInput{Run: spec.RunRef{WorkflowID: "iris", RunID: "1-2"}}, nil)
	require.NoError(t, w.GetWorkflowError())
}

// queueOf runs the queue of a run that ends after a second.
func queueOf(t *testing.T, in closure.QueueInput) (warnings []string) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(warns(func(text string) { warnings = append(warnings, text) }))
	w := suite.NewTestWorkflowEnvironment()
	w.RegisterWorkflowWithOptions(queue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
	w.RegisterActivityWithOptions(func(closure.CheckInput) (closure.CheckOutput, error) {
		return closure.CheckOutput{}, temporal.NewApplicationError("the run is open", "RunOpen")
	}, activity.RegisterOptions{Name: closure.ActivityClosuresCheck})
	w.RegisterDelayedCallback(func() { w.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Over: "it has ended"}) }, time.Second)
	w.ExecuteWorkflow(closure.QueueType, in, nil)
	assert.NoError(t, w.GetWorkflowError())
	return warnings
}

// SEED-34: a queue without a limit logs a warning.
func TestAQueueWithoutALimitWarns(t *testing.T) {
	for size, want := range map[int]int{0: 0, 2: 0, -1: 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			warnings := queueOf(t, closure.QueueInput{QueueSize: size})
			n := 0
			for _, text := range warnings {
				if text == "the call queue is limited only in bytes, so schedule hardly ever waits" {
					n++
				}
			}
			assert.Equal(t, want, n, warnings)
		})
	}
}

// warns is a logger that passes on warnings.
type warns func(text string)

func (w warns) Debug(string, ...any)       {}
func (w warns) Info(string, ...any)        {}
func (w warns) Warn(text string, _ ...any) { w(text) }
func (w warns) Error(string, ...any)       {}

// If a request to cancel a closure does not reach its host, it is retried for as long as the
// host holds the closure: a call that does not end by itself would run forever, and joins would
// wait for it.
func TestAHostIsToldAgainToCancel(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	w := suite.NewTestWorkflowEnvironment()
	w.SetTestTimeout(time.Minute)
	w.RegisterWorkflowWithOptions(queue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
	register := func(name string, f any) {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	register(closure.ActivityClosuresCheck, func(context.Context, closure.CheckInput) (closure.CheckOutput, error) {
		return closure.CheckOutput{}, activity.ErrResultPending
	})
	var lease []byte
	register(closure.ActivityRunClosures, func(ctx context.Context, _ closure.Lease) (closure.LeaseResult, error) {
		lease = activity.GetInfo(ctx).TaskToken
		return closure.LeaseResult{}, activity.ErrResultPending
	})
	var told []closure.CancelLease
	register(closure.ActivityCancelClosures, func(_ context.Context, in closure.CancelLease) error {
		told = append(told, in)
		if len(told) <= 2 {
			return temporal.NewNonRetryableApplicationError("the host is busy", "Busy", nil)
		}
		return w.CompleteActivity(lease, closure.LeaseResult{Outcomes: []closure.Outcome{{
			ID: 1, Kind: closure.OutcomeCancelled, Error: &closure.Error{Message: closure.TextCancelled},
		}}}, nil)
	})
	ask := func(after time.Duration, name string, q any, answered func(any)) {
		w.RegisterDelayedCallback(func() {
			w.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
				OnReject: func(err error) { assert.NoError(t, err) }, OnAccept: func() {},
				OnComplete: func(v any, err error) {
					require.NoError(t, err)
					answered(v)
				},
			}, q)
		}, after)
	}
	w.RegisterDelayedCallback(func() {
		w.SignalWorkflow(closure.SignalServing, closure.ServingMessage{
			Host: "a", Queue: "q/host/a/i", Seq: 1,
			Serving: []closure.ServingTask{{Task: "worker-0", Process: "p", Slots: 1, Functions: []string{"f"}}},
		})
	}, time.Second)
	ask(2*time.Second, closure.UpdateSchedule, closure.ScheduleRequest{Client: "c", Batch: 1, Closures: []closure.Closure{{Function: "f"}}}, func(any) {})
	ask(3*time.Second, closure.UpdateCancelClosures, closure.CancelRequest{}, func(v any) {
		assert.Equal(t, closure.CancelAnswer{Told: 1}, v)
	})
	joined := false
	ask(4*time.Second, closure.UpdateJoin, closure.WaitRequest{Client: "c", Call: 1}, func(v any) {
		joined = true
		assert.Equal(t, closure.WaitAnswer{Done: true}, v)
		w.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Over: "the end"})
	})
	w.ExecuteWorkflow(closure.QueueType, closure.QueueInput{Run: spec.RunRef{WorkflowID: "iris", RunID: "1"}}, nil)
	require.True(t, w.IsWorkflowCompleted())
	require.NoError(t, w.GetWorkflowError())
	assert.True(t, joined)
	require.Len(t, told, 3)
	for _, in := range told {
		assert.Equal(t, []uint64{1}, in.Closures)
		assert.Positive(t, in.Grace)
	}
}
