package activities

import (
	"context"
	"errors"
	"io/fs"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// pruneEvery is the time between searches for logs to remove.
const pruneEvery = time.Hour

// pruneLogs removes expired logs until ctx is done.
func (r *reconciler) pruneLogs(ctx context.Context) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		// The first search is delayed because the clock may still be wrong right after boot.
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		removed, err := r.Retention.Apply(r.LogRoot, r.now(), Holds)
		if len(removed) > 0 {
			r.Log.Info("removed logs of runs that ended long ago or had too many", zap.Strings("runs", removed))
		}
		if err != nil {
			r.Log.Warn("could not remove expired logs", zap.Error(err))
		}
	}
}

// noteEnd records the end of a run in its log directory, as the logs' user. closed is the same as
// for abandon. It returns an error only for a full disk, so that the caller can retry.
func (r *reconciler) noteEnd(p *plan, closed *workflowpb.WorkflowExecutionInfo) error {
	if p.LogRoot == spec.NullDir || p.LogRoot == "" {
		return nil
	}
	at := r.now()
	if t := closed.GetCloseTime(); t != nil {
		at = t.AsTime()
	}
	user := p.User
	if p.LogRoot == r.LogRoot {
		user = (*hostuser.User)(nil) // the directory belongs to us
	}
	err := user.Do(func() error { return retention.End(p.LogRoot, p.Run.WorkflowID, p.Run.RunID, at) })
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Log.Warn("could not record a run's end; its logs stay until they are removed by hand", zap.String("run", p.Run.WorkflowID), zap.Error(err))
	}
	return nil
}
