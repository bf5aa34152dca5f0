package temporal

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/clusterrun/clusterrun/activities/retry"
)

// watchEvery are the times between looks: a minute bounds how late something is noticed.
var watchEvery = retry.Backoff{First: time.Second, Most: time.Minute}

// watch looks until something is found, within one attempt of the activity of ctx. An attempt
// that fails for want of news costs no more history, and looks like a failure to whoever watches
// the workflow. The heartbeats have the number of looks. nothing is returned where the worker
// stops, and where an earlier version has scheduled the activity: it gives an attempt no time.
func watch(ctx context.Context, nothing error, look func(context.Context) (found bool, err error)) error {
	beat := activity.GetInfo(ctx).HeartbeatTimeout / 3
	again := watchEvery
	for looks := 1; ; looks++ {
		if found, err := look(ctx); err != nil || found {
			return err
		}
		if beat <= 0 {
			return nothing
		}
		next := time.NewTimer(again.Next())
		for waiting := true; waiting; {
			activity.RecordHeartbeat(ctx, looks)
			select {
			case <-next.C:
				waiting = false
			case <-time.After(beat):
			case <-activity.GetWorkerStopChannel(ctx):
				return nothing
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
