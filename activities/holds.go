package activities

import (
	"context"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// Holds returns the runs' reservations on this host, oldest first. The host reports them when it
// joins a fleet.
func (h *Host) Holds() []fleet.Holding {
	var holds []fleet.Holding
	for _, p := range h.plans.all() {
		tasks, devices, stuck := p.held(false)
		if tasks == 0 {
			continue
		}
		holds = append(holds, fleet.Holding{
			Run:        fleet.Run{WorkflowID: p.Run.WorkflowID, RunID: p.Run.RunID},
			Generation: p.Generation, Tasks: tasks, Devices: devices, Stuck: stuck,
			Exclusive: p.Spec.Hosts.Exclusive && !p.Released,
		})
	}
	return holds
}

// CancelRuns cancels all runs with tasks on this host, because their owner is gone, and returns
// them. The runs end while the supervisor stops their processes.
func (h *Host) CancelRuns(ctx context.Context) []runkey.Run {
	var runs []runkey.Run
	for _, p := range h.plans.all() {
		if err := h.Server.CancelRun(ctx, p.Run.WorkflowID, p.Run.RunID); err != nil {
			h.Log.Warn("a run whose launcher has exited cannot be cancelled", zap.String("run", p.Run.WorkflowID), zap.Error(err))
			continue
		}
		runs = append(runs, p.Run)
	}
	return runs
}

// AwaitIdle returns when no RunTask call holds a lease, so that each call had time to report how
// its process ended. It returns early when ctx is done.
func (h *Host) AwaitIdle(ctx context.Context) {
	for h.leases.count() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-h.leases.ended:
		}
	}
}
