package call

import (
	"context"
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// tellWaits reports why a queue that a command waits for makes no progress, if the queue cannot
// end that itself: it is paused, or has calls that no task serves. It reports each change
// until ctx ends.
func tellWaits(ctx context.Context, status func(context.Context) (closure.QueueStatus, error), say func(string)) {
	last := ""
	for after := askFirst; retry.Sleep(ctx, after) == nil; after = askAgain {
		s, err := status(ctx)
		if err != nil { // reported elsewhere
			continue
		}
		now := whatWaits(s)
		if now != "" && now != last {
			say(now)
		}
		last = now
	}
}

// whatWaits returns why a queue makes no progress, or "" if nothing stops it.
func whatWaits(s closure.QueueStatus) string {
	var why []string
	if s.State == closure.QueuePaused && s.Counts.Queued > 0 {
		why = append(why, fmt.Sprintf("the queue is paused (%s) until `clusterrun call resume RUN`", s.Paused))
	}
	for i, u := range s.Unserved {
		if i == 3 {
			why = append(why, "and others")
			break
		}
		why = append(why, unservedLine(u))
	}
	return strings.Join(why, "; ")
}
