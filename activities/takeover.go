package activities

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// takeOverAgain is the delay between repeated requests to the server.
var takeOverAgain = retry.Backoff{First: 100 * time.Millisecond, Most: reconcileEvery}

// takeOverOnceMore is the delay before the tasks are taken over once more, because the server may
// have offered a task again to the last poll of the process that has exited.
const takeOverOnceMore = time.Second

// takeOver takes over the tasks held by an earlier process of this host worker, for the runs that
// exist when this process starts.
func (r *reconciler) takeOver(ctx context.Context) {
	by := server.Taker{
		Identity: r.Identity, Host: r.Name, Queue: r.Queue,
		Why: retryAt("the process that held the task has exited", spec.ErrAway, 0),
	}
	for _, p := range r.plans.all() {
		r.group.Go(func(ctx context.Context) {
			if r.takeOverRun(ctx, p.Run, by) == nil && retry.Sleep(ctx, takeOverOnceMore) == nil {
				_ = r.takeOverRun(ctx, p.Run, by)
			}
		})
	}
}

// takeOverRun asks the server until it answers or ctx is done.
func (r *reconciler) takeOverRun(ctx context.Context, run runkey.Run, by server.Taker) error {
	for again := takeOverAgain; ; {
		err := r.Server.TakeOver(ctx, run, by)
		if err == nil {
			return nil
		}
		r.Log.Debug("cannot take over a run's tasks at present", zap.String("run", run.WorkflowID), zap.Error(err))
		if err := again.Sleep(ctx); err != nil {
			return err
		}
	}
}
