package workflows_test

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

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A host that could not be told to cancel a closure is told again, for as long as it holds
// it: a call that does not end by itself would go on for ever, and joins would wait for it.
func TestAHostIsToldAgainToCancel(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	w := suite.NewTestWorkflowEnvironment()
	w.SetTestTimeout(time.Minute)
	w.RegisterWorkflowWithOptions(workflows.ClosureQueue, workflow.RegisterOptions{Name: spec.ClosureQueueType})
	register := func(name string, f any) {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	register(spec.ActivityClosuresCheck, func(context.Context, spec.ClosuresCheckInput) (spec.ClosuresCheckOutput, error) {
		return spec.ClosuresCheckOutput{}, activity.ErrResultPending
	})
	var lease []byte
	register(spec.ActivityRunClosures, func(ctx context.Context, _ spec.Lease) (spec.LeaseResult, error) {
		lease = activity.GetInfo(ctx).TaskToken
		return spec.LeaseResult{}, activity.ErrResultPending
	})
	var told []spec.CancelLease
	register(spec.ActivityCancelClosures, func(_ context.Context, in spec.CancelLease) error {
		told = append(told, in)
		if len(told) <= 2 {
			return temporal.NewNonRetryableApplicationError("the host is busy", "Busy", nil)
		}
		return w.CompleteActivity(lease, spec.LeaseResult{Outcomes: []spec.Outcome{{
			ID: 1, Kind: spec.OutcomeCancelled, Error: &spec.ClosureError{Message: spec.TextClosureCancelled},
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
		w.SignalWorkflow(spec.SignalServing, spec.ServingMessage{
			Host: "a", Queue: "q/host/a/i", Seq: 1,
			Serving: []spec.ServingTask{{Task: "worker-0", Process: "p", Slots: 1, Functions: []string{"f"}}},
		})
	}, time.Second)
	ask(2*time.Second, spec.UpdateSchedule, spec.ScheduleRequest{Client: "c", Batch: 1, Closures: []spec.Closure{{Function: "f"}}}, func(any) {})
	ask(3*time.Second, spec.UpdateCancelClosures, spec.CancelRequest{}, func(v any) {
		assert.Equal(t, spec.CancelAnswer{Told: 1}, v)
	})
	joined := false
	ask(4*time.Second, spec.UpdateJoin, spec.WaitRequest{Client: "c", Call: 1}, func(v any) {
		joined = true
		assert.Equal(t, spec.WaitAnswer{Done: true}, v)
		w.SignalWorkflow(spec.SignalServing, spec.ServingMessage{Over: "the end"})
	})
	w.ExecuteWorkflow(spec.ClosureQueueType, spec.ClosureQueueInput{Run: spec.BarrierRun{WorkflowID: "iris", RunID: "1"}}, nil, nil)
	require.True(t, w.IsWorkflowCompleted())
	require.NoError(t, w.GetWorkflowError())
	assert.True(t, joined)
	require.Len(t, told, 3)
	for _, in := range told {
		assert.Equal(t, []uint64{1}, in.Closures)
		assert.Positive(t, in.Grace)
	}
}
