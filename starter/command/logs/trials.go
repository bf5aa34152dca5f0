package logs

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// withTrials replaces a sweep with its trials, in order.
func withTrials(ctx context.Context, c client.Client, chosen *cli.Selected) (*cli.Selected, error) {
	id := chosen.Runs[0].ID
	if s, err := chosen.Runs[0].Summary(ctx); err != nil || !s.Sweep {
		return chosen, err
	}
	ids, err := cli.TrialIDs(ctx, c, id, cli.AnyRuns)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("sweep %s has not started any trials yet", id)
	}
	number := func(id string) int {
		_, trial, _ := spec.SplitTrialID(id)
		return trial
	}
	slices.SortFunc(ids, func(a, b string) int { return number(a) - number(b) })
	trials := &cli.Selected{}
	for _, id := range ids {
		trials.Runs = append(trials.Runs, starter.Get(c, id, ""))
	}
	return trials, nil
}
