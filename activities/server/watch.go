package server

import (
	"context"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// watchEvery is the usual interval between checks. A change is noticed within a minute.
var watchEvery = retry.Backoff{First: time.Second, Most: time.Minute}

// mostLasting limits the number of concurrent long-lasting activities. Each holds a slot of its
// queue, and slots are also needed to start and stop tasks.
const mostLasting = 500

// lasting is the number of long-lasting activities.
var lasting atomic.Int64

// watch checks until look finds something, within one attempt of ctx's activity. Failing attempts
// would also not add to the history, but people who watch the workflow would mistake them for
// failures. The heartbeats carry the number of checks. If the worker is stopping, or if there are
// already too many long-lasting activities, watch returns without a result, and the next attempt
// continues.
func watch(ctx context.Context, every retry.Backoff, nothing error, look func(context.Context) (found bool, err error)) error {
	beat := activity.GetInfo(ctx).HeartbeatTimeout / 3
	if found, err := look(ctx); err != nil || found {
		return err
	}
	defer lasting.Add(-1)
	if lasting.Add(1) > mostLasting {
		return nothing
	}
	again := every
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

// stops reports whether the worker is stopping, which will cancel the activity's context.
func stops(ctx context.Context) bool {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}
