package cli

import (
	"cmp"
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Earlier returns a function that reports that an earlier run had the same ID. Call it after a run
// has started, because the ID then refers to the new run.
func Earlier(ctx context.Context, a *App, c client.Client, id string) (say func()) {
	if id == "" {
		return func() {}
	}
	s, err := starter.Get(c, id, "").Summary(ctx)
	if err != nil || s.Open {
		return func() {} // no earlier run, or the start reports the error
	}
	return func() {
		a.Say("an earlier run %s ended %s (%s); this is a new run; to select the earlier one, use --execution %s",
			id, s.Ended.Local().Format(LocalTime), cmp.Or(s.Ending, string(s.Verdict), "failed"), s.ExecutionID)
	}
}

// FindEarlier completes the abbreviated IDs of earlier runs in a spec. It returns the same errors
// as [starter.Find].
func FindEarlier(ctx context.Context, c client.Client, s *spec.RunSpec) error {
	for i := range s.After {
		id, err := starter.Find(ctx, c, s.After[i].Run)
		if err != nil {
			return fmt.Errorf("after: %w", err)
		}
		s.After[i].Run = id
	}
	return nil
}
