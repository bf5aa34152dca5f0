package server

import (
	"context"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// watchEvery is the usual time between checks: a change is noticed within a minute.
var watchEvery = retry.Backoff{First: time.Second, Most: time.Minute}

// mostLasting bounds the activities that last here at a time. Each holds a slot of its queue,
// which is needed to start and end tasks, too.
const mostLasting = 500

// lasting is the number of activities that last.
var lasting atomic.Int64

// watch checks until something is found, within one attempt of the activity of ctx. Failing
// attempts would not add to the history either, but would look like failures to people who
// watch the workflow. The heartbeats have the number of checks. It returns nothing if the
// worker stops, or if too many checks last already: the next attempt checks again.
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

// stops reports whether the worker is stopping, which will end the context of the activity.
func stops(ctx context.Context) bool {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}
