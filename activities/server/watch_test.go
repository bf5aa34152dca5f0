package server

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
	"go.temporal.io/sdk/workflow"
)

// watching executes an activity that waits the way looks do, with a worker that stops once
// stop is closed, and returns how the activity ends.
func watching(t *testing.T, stop chan struct{}, watching func(context.Context) error) error {
	t.Helper()
	e := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	e.SetTestTimeout(time.Minute)
	e.SetWorkerStopChannel(stop)
	e.RegisterActivityWithOptions(watching, activity.RegisterOptions{Name: "look"})
	e.ExecuteWorkflow(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, HeartbeatTimeout: 10 * time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		}), "look").Get(ctx, nil)
	})
	require.True(t, e.IsWorkflowCompleted())
	return e.GetWorkflowError()
}

var errNothing = errors.New("nothing")

// Long looks leave slots to the activities that start and end tasks.
func TestLooksThatLastAreBounded(t *testing.T) {
	for _, test := range []struct {
		others int64
		looks  int
	}{{mostLasting, 1}, {mostLasting - 1, 2}} {
		lasting.Store(test.others)
		defer lasting.Store(0)
		looks := 0
		err := watching(t, make(chan struct{}), func(ctx context.Context) error {
			return watch(ctx, watchEvery, errNothing, func(context.Context) (bool, error) {
				looks++
				return looks == 2, nil
			})
		})
		assert.Equal(t, test.looks, looks, "beside %d", test.others)
		if test.looks == 1 {
			assert.ErrorContains(t, err, errNothing.Error())
		} else {
			assert.NoError(t, err)
		}
		assert.Equal(t, test.others, lasting.Load(), "its slot is free again")
	}
}

// A worker that stops ends the contexts of activities, too. This is not a failure of a look.
func TestALookEndsWithItsWorker(t *testing.T) {
	for range 20 {
		stop := make(chan struct{})
		err := watching(t, stop, func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return watch(ctx, watchEvery, errNothing, func(context.Context) (bool, error) {
				close(stop)
				cancel()
				return false, nil
			})
		})
		require.ErrorContains(t, err, errNothing.Error())
	}
}

// A look that is no longer needed is cancelled.
func TestALookIsCancelled(t *testing.T) {
	err := watching(t, make(chan struct{}), func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		return watch(ctx, watchEvery, errNothing, func(context.Context) (bool, error) {
			cancel()
			return false, nil
		})
	})
	require.ErrorContains(t, err, context.Canceled.Error())
}
