package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// call starts a host's activity.
func call[I, O any](ctx workflow.Context, a hostapi.Activity[I, O], in I) future[O] {
	return future[O]{workflow.ExecuteActivity(ctx, hostapi.Name(a), in)}
}

// hereTakes limits how long callHere runs an activity within the workflow task, because a status
// query waits for the workflow task.
const hereTakes = 2 * time.Second

// callHere is like [call], but for an activity that usually takes milliseconds and may be repeated.
// On a local queue its first try is part of the workflow task, which saves the server a third of
// its work for a short run. If that try fails or takes long, the server retries the activity like
// any other, and shows what the run is waiting for. An activity with heartbeats is expected to take
// long.
func callHere[I, O any](ctx workflow.Context, a hostapi.Activity[I, O], in I) future[O] {
	o := workflow.GetActivityOptions(ctx)
	if !spec.IsLocalQueue(o.TaskQueue) || o.HeartbeatTimeout > 0 {
		return call(ctx, a, in)
	}
	here := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: hereTakes, RetryPolicy: once(), Summary: o.Summary,
	})
	answer, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		out, err := future[O]{workflow.ExecuteLocalActivity(here, hostapi.Name(a), in)}.get(ctx)
		var refused *temporal.ApplicationError
		final := temporal.IsCanceledError(err) || errors.As(err, &refused) && refused.NonRetryable()
		if err != nil && !final {
			out, err = call(ctx, a, in).get(ctx)
		}
		settable.Set(out, err)
	})
	return future[O]{answer}
}

// future is a workflow.Future with a typed value.
type future[O any] struct{ workflow.Future }

func (f future[O]) get(ctx workflow.Context) (O, error) {
	var out O
	err := f.Future.Get(ctx, &out)
	return out, err
}
