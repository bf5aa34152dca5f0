package workers

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/process/supervise"
)

// stayForRuns keeps the host worker running while its queue has open runs without a host, since it
// may be the only host that can continue them. If the server is unreachable, it assumes so.
func (s *side) stayForRuns(ctx context.Context, c client.Client) {
	look := time.NewTicker(supervise.IdleLook(s.IdleExit))
	defer look.Stop()
	for {
		if n, err := s.openRuns(ctx, c); err != nil || n > 0 {
			supervise.Stay(s.StateDir)
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}
