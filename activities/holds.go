package activities

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// Holds returns the reservations of runs on this host, the oldest first, for a fleet that the
// host joins.
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

// Held returns the runs that have reserved the host worker with that state directory but have
// not released it. The host worker may be another process.
func Held(stateDir string) (held []runkey.Run, err error) {
	err = eachPlan(stateDir, func(text []byte) error {
		var p plan
		err := json.Unmarshal(text, &p)
		if err == nil && !p.Released {
			held = append(held, p.Run)
		}
		return err
	})
	return held, err
}

// eachPlan calls do with each plan in a state directory, until that returns an error.
func eachPlan(stateDir string, do func(text []byte) error) error {
	files, err := filepath.Glob(filepath.Join(plansIn(stateDir), "*.json"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the run has been closed since
		}
		if err == nil {
			err = do(text)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// CancelRuns cancels all runs that have tasks here, because their owner is gone, and returns
// them. They end while the supervisor stops their processes.
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

// AwaitIdle returns when RunTask no longer holds a lease, so all of them could report how
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
