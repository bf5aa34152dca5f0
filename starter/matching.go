package starter

import (
	"context"
	"math"

	"go.temporal.io/sdk/client"
)

// latestMatching returns all runs and trials that match a pattern, latest first.
func latestMatching(ctx context.Context, c client.Client, pattern string) (runs []Summary, err error) {
	o := ListOptions{ID: pattern, Trials: true, Limit: math.MaxInt32 / 2}
	for _, open := range []bool{true, false} {
		if runs, err = o.latest(ctx, c, runs, open); err != nil {
			return nil, err
		}
	}
	return runs, nil
}
