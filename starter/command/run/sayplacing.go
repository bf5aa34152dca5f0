package run

import (
	"context"
	"errors"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// lookAtPlace is how often a command that waits for a run looks what that waits for, and
// lookAtPlaced how often while it waits for nothing.
const lookAtPlace, lookAtPlaced = 2 * time.Second, 10 * time.Second

// sayPlacing says what a run waits for, whenever that changes, until ctx is done: a group
// that has lost a host may be back in the queue.
func sayPlacing(ctx context.Context, a *cli.App, r *starter.Run) {
	said, again := "", lookAtPlace
	for retry.Sleep(ctx, again) == nil {
		again = lookAtPlace
		s, err := r.Status(ctx)
		var gone *starter.NotFoundError
		switch {
		case errors.As(err, &gone):
			return
		case err != nil || s.Unanswered:
			continue // others tell of a server that is away
		case s.State == spec.RunEnded:
			return
		case s.State != spec.RunPlacing && s.State != spec.RunRestarting:
			said, again = "", lookAtPlaced
			continue
		case len(s.Waiting) == 0:
			continue
		}
		if line := report.WaitingLine(s.Waiting[0], time.Now()); (s.Waiting[0].Position > 0 || s.Waiting[0].Fetching != nil) && line != said {
			said = line
			a.Say("%s", a.Color.Dim("waiting for "+line))
		}
	}
}
