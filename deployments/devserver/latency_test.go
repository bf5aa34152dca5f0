package devserver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// With the default settings no retry comes sooner than after a second. On a busy
// machine one may be late all the same, so the quickest counts.
func TestRetryDelayOfAMillisecondIsNotASecond(t *testing.T) {
	const attempts = 6
	var mu sync.Mutex
	var began []time.Time
	flaky := func(ctx context.Context) error {
		mu.Lock()
		began = append(began, time.Now())
		mu.Unlock()
		if activity.GetInfo(ctx).Attempt < attempts {
			return temporal.NewApplicationErrorWithOptions("again", "again",
				temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond})
		}
		return nil
	}
	wf := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour})
		return workflow.ExecuteActivity(ctx, "flaky").Get(ctx, nil)
	}
	c := start(t).client()
	startWorker(t, c, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(wf, workflow.RegisterOptions{Name: "retries"})
		r.RegisterActivityWithOptions(flaky, activity.RegisterOptions{Name: "flaky"})
	})
	require.NoError(t, awaitResult(t, startWorkflow(t, c, "retries"), nil))
	require.Len(t, began, attempts)
	quickest := time.Hour
	for i := 1; i < attempts; i++ {
		quickest = min(quickest, began[i].Sub(began[i-1]))
	}
	assert.Less(t, quickest, time.Second)
}

// The activity heartbeats only once, before it is cancelled: it has no other way to learn of it.
func TestCancellationIsPushed(t *testing.T) {
	running := make(chan struct{})
	told := make(chan struct{})
	wait := func(ctx context.Context) error {
		activity.RecordHeartbeat(ctx)
		close(running)
		<-ctx.Done()
		close(told)
		return ctx.Err()
	}
	wf := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, HeartbeatTimeout: time.Hour, WaitForCancellation: true,
		})
		return workflow.ExecuteActivity(ctx, "wait").Get(ctx, nil)
	}
	c := start(t).client()
	startWorker(t, c, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(wf, workflow.RegisterOptions{Name: "waits"})
		r.RegisterActivityWithOptions(wait, activity.RegisterOptions{Name: "wait"})
	})
	run := startWorkflow(t, c, "waits")
	<-running
	require.NoError(t, c.CancelWorkflow(context.Background(), run.GetID(), ""))
	select {
	case <-told:
	case <-time.After(patience):
		require.FailNow(t, "the activity was not told")
	}
	var canceled *temporal.CanceledError
	assert.True(t, errors.As(awaitResult(t, run, nil), &canceled))
}
