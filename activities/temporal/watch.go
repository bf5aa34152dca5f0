package temporal

import (
	"context"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/clusterrun/clusterrun/activities/retry"
)

// watchEvery are the times between looks: a minute bounds how late something is noticed.
var watchEvery = retry.Backoff{First: time.Second, Most: time.Minute}

// mostLasting is how many looks may last here at a time. Each holds a slot of its queue, which
// those who start and end tasks need, too.
const mostLasting = 500

// lasting is how many do.
var lasting atomic.Int64

// watch looks until something is found, within one attempt of the activity of ctx. An attempt
// that fails for want of news costs no more history, and looks like a failure to whoever watches
// the workflow. The heartbeats have the number of looks. nothing is returned where the worker
// stops, where an earlier version has scheduled the activity (it gives an attempt no time), and
// where too many looks last already: then the next attempt looks again.
func watch(ctx context.Context, nothing error, look func(context.Context) (found bool, err error)) error {
	beat := activity.GetInfo(ctx).HeartbeatTimeout / 3
	if found, err := look(ctx); err != nil || found {
		return err
	}
	if beat <= 0 {
		return nothing
	}
	defer lasting.Add(-1)
	if lasting.Add(1) > mostLasting {
		return nothing
	}
	again := watchEvery
	for looks := 1; ; looks++ {
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
				if stops(ctx) {
					return nothing
				}
				return ctx.Err()
			}
		}
		if found, err := look(ctx); err != nil || found {
			return err
		}
	}
}

// stops reports whether the worker stops, which ends the context of the activity in the end.
func stops(ctx context.Context) bool {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}
