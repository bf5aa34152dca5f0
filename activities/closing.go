package activities

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"go.uber.org/zap"
)

// CancelRuns cancels all runs that have tasks here, because their owner is gone, and returns
// them. They end while the supervisor stops their processes.
func (h *Host) CancelRuns(ctx context.Context) []runkey.Run {
	var runs []runkey.Run
	for _, p := range h.plans.all() {
		if err := h.Server.CancelRun(ctx, p.Run.WorkflowID, p.Run.RunID); err != nil {
			h.Log.Warn("a run whose owner is gone cannot be cancelled", zap.String("run", p.Run.WorkflowID), zap.Error(err))
			continue
		}
		runs = append(runs, p.Run)
	}
	return runs
}

// AwaitIdle returns when no RunTask holds a lease any more, so all of them could report how
// their processes ended. It returns early when ctx ends.
func (h *Host) AwaitIdle(ctx context.Context) {
	for h.leases.count() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-h.leases.ended:
		}
	}
}
