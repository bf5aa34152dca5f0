package starter

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// FindEarlier completes the abbreviated IDs of earlier runs in a spec. It fails like [Find].
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
