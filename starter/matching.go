package starter

import (
	"context"
	"math"
	"slices"

	"go.temporal.io/sdk/client"
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
	return matching(ctx, c, pattern, of, func(Summary) bool { return true })
}

// TrialIDs is like Matching for a sweep's trials. It excludes other runs with IDs that start
// with the sweep's ID and a dot.
func TrialIDs(ctx context.Context, c client.Client, sweep string, of RunState) ([]string, error) {
	return matching(ctx, c, sweep+".*", of, func(s Summary) bool { return s.trialOf == sweep })
}

func matching(ctx context.Context, c client.Client, pattern string, of RunState, wanted func(Summary) bool) ([]string, error) {
	runs, err := latestMatching(ctx, c, pattern)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var ids []string
	for _, r := range runs { // latest first
		if !seen[r.RunID] && wanted(r) && (of == AnyRuns || r.Open == (of == OpenRuns)) {
			ids = append(ids, r.RunID)
		}
		seen[r.RunID] = true
	}
	slices.Reverse(ids)
	return ids, nil
}

// latestMatching returns all runs and trials that match a pattern, latest first.
func latestMatching(ctx context.Context, c client.Client, pattern string) (runs []Summary, err error) {
	o := ListOptions{id: pattern, Trials: true, Limit: math.MaxInt32 / 2}
	for _, open := range []bool{true, false} {
		if runs, err = o.latest(ctx, c, runs, open); err != nil {
			return nil, err
		}
	}
	return runs, nil
}
