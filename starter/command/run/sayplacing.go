package run

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// lookAtPlace is the interval between checks of a run that waits for hosts, and lookAtPlaced
// between checks of any other run.
const lookAtPlace, lookAtPlaced = 2 * time.Second, 10 * time.Second

// sayPlacing reports the hosts or the position that a run waits for, whenever that changes, until
// ctx is done. A group that has lost a host may return to the queue.
func sayPlacing(ctx context.Context, a *cli.App, r *starter.Run) {
	said, again := "", lookAtPlace
	for retry.Sleep(ctx, again) == nil {
		again = lookAtPlace
		s, err := r.Status(ctx)
		switch {
		case starter.IsError[*starter.NotFoundError](err):
			return
		case err != nil || s.Unanswered:
			continue // other code reports a server that does not answer
		case s.State == spec.RunEnded:
			return
		case s.State != spec.RunPlacing && s.State != spec.RunRestarting:
			said, again = "", lookAtPlaced
			continue
		case len(s.Waiting) == 0:
			continue
		}
		if line := s.Waiting[0].Text(time.Now()); (s.Waiting[0].Position > 0 || s.Waiting[0].Fetching != nil) && line != said {
			said = line
			a.Say("%s", a.Color.Dim("waiting for "+line))
		}
	}
}
