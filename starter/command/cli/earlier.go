package cli

import (
	"cmp"
	"context"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
)

// Earlier returns what says that a run is not the first of its ID, once it has been started: it is
// another execution, and what names the ID alone means the latest.
func Earlier(ctx context.Context, a *App, c client.Client, id string) (say func()) {
	if id == "" {
		return func() {}
	}
	s, err := starter.Get(c, id, "").Summary(ctx)
	if err != nil || s.Open {
		return func() {} // there is none, or the start says what is wrong
	}
	return func() {
		a.Say("there was a run %s already, which ended %s (%s); this is another one, and --execution %s stands for the earlier one",
			id, s.Ended.Local().Format(LocalTime), cmp.Or(s.Ending, string(s.Verdict), "failed"), s.ExecutionID)
	}
}
