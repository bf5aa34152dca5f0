package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// AmbiguousError reports that a prefix matches the IDs of several runs.
type AmbiguousError struct {
	Beginning string
	RunIDs    []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is ambiguous; it matches %s. Write more of the ID", e.Beginning, shorten.List(e.RunIDs, 5))
}

// Find returns the run ID that equals beginning or, if there is none, the only run ID that starts
// with it. It fails with [*NotFoundError] or [*AmbiguousError].
func Find(ctx context.Context, c client.Client, beginning string) (string, error) {
	_, err := c.DescribeWorkflowExecution(ctx, beginning, "")
	if !servererror.IsNotFound(err) {
		return beginning, err
	}
	o := ListOptions{ID: spec.Beginning(beginning), Trials: strings.Contains(beginning, "."), Limit: 100}
	var found []Summary
	for _, open := range []bool{true, false} {
		if found, err = o.latest(ctx, c, found, open); err != nil {
			return "", fmt.Errorf("look for runs that start with %s: %w", beginning, err)
		}
	}
	var ids []string
	for _, r := range found {
		if !slices.Contains(ids, r.RunID) {
			ids = append(ids, r.RunID)
		}
	}
	switch len(ids) {
	case 0:
		return "", &NotFoundError{RunID: beginning}
	case 1:
		return ids[0], nil
	}
	return "", &AmbiguousError{beginning, ids}
}
