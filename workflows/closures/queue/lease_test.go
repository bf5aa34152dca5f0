package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

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
