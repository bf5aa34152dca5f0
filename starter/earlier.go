package starter

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// FindEarlier completes the IDs of the earlier runs that a spec names with their beginnings. It
// fails as [Find] does.
func FindEarlier(ctx context.Context, c client.Client, s *spec.RunSpec) error {
	for i := range s.After {
		id, err := Find(ctx, c, s.After[i].Run)
		if err != nil {
			return fmt.Errorf("after: %w", err)
		}
		s.After[i].Run = id
	}
	return nil
}
