package workers

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

const (
	// idleLooks is the number of idle checks per idle period.
	idleLooks    = 20
	idleLookMost = 10 * time.Second
)

// exitWhenIdle stops the host worker after IdleExit without runs.
func (s *side) exitWhenIdle(ctx context.Context) {
	look := time.NewTicker(max(10*time.Millisecond, min(s.IdleExit/idleLooks, idleLookMost)))
	defer look.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if s.isNeeded(ctx) {
			last = time.Now()
			continue
		}
		pid := supervisor.Holder(s.StateDir)
		if time.Since(last) < s.IdleExit || pid == 0 {
			continue
		}
		s.log.Info("this host worker was idle for too long; exiting", zap.Duration("idle", s.IdleExit))
		if err := supervisor.RequestEnd(ctx, s.StateDir, pid); err != nil && ctx.Err() == nil {
			s.log.Warn("cannot stop the supervisor", zap.Error(err))
		}
	}
}

// HeldRuns returns the runs that reserve a state directory's host worker.
func HeldRuns(stateDir string) ([]runkey.Run, error) { return activities.HeldRuns(stateDir) }

// isNeeded reports whether this host has runs or its queue has open runs, which perhaps only this
// host can continue. It returns true if the server is unreachable.
func (s *side) isNeeded(ctx context.Context) bool {
	held, err := activities.HeldRuns(s.StateDir)
	runs := int64(len(held))
	if err == nil && runs == 0 && s.Role.servesWorkflows() {
		runs, err = s.openRuns(ctx, s.client)
	}
	return err != nil || runs > 0
}
