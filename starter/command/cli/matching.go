package cli

import (
	"context"
	"math"
	"slices"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter"
)

// RunState limits a search to open or ended runs. Its text goes before "run" in messages, or is
// empty.
type RunState string

// The values of [RunState].
const (
	AnyRuns   RunState = ""
	OpenRuns  RunState = "open "
	EndedRuns RunState = "ended "
)

// Matching returns the IDs of the runs that match a [path.Match] pattern, in order of their
// start. It counts only the latest of several runs with the same ID.
func Matching(ctx context.Context, c client.Client, pattern string, of RunState) ([]string, error) {
	return matching(ctx, c, pattern, of, func(starter.Summary) bool { return true })
}

// TrialIDs is like Matching for a sweep's trials. It excludes other runs with IDs that start
// with the sweep's ID and a dot.
func TrialIDs(ctx context.Context, c client.Client, sweep string, of RunState) ([]string, error) {
	return matching(ctx, c, sweep+".*", of, func(s starter.Summary) bool { return s.TrialOf == sweep })
}

// SignalSweep sends a signal to an open sweep, whose execution may continue as new at any moment.
func SignalSweep(ctx context.Context, r *starter.Run, name string, arg any) error {
	err := r.Client().SignalWorkflow(ctx, r.ID, "", name, arg)
	if servererror.IsNotFound(err) {
		return &starter.EndedError{RunID: r.ID}
	}
	return err
}

func matching(ctx context.Context, c client.Client, pattern string, of RunState, wanted func(starter.Summary) bool) (ids []string, err error) {
	runs, err := starter.List(ctx, c, starter.ListOptions{ID: pattern, Trials: true, Limit: math.MaxInt32 / 2})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, r := range runs { // latest first
		if !seen[r.RunID] && wanted(r) && (of == AnyRuns || r.Open == (of == OpenRuns)) {
			ids = append(ids, r.RunID)
		}
		seen[r.RunID] = true
	}
	slices.Reverse(ids)
	return ids, nil
}
