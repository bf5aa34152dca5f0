package activities

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/retry"
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
			done := false
			for again := takeOverAgain; ; {
				err := r.Server.TakeOver(ctx, p.Run, by)
				switch {
				case err == nil && (done || retry.Sleep(ctx, takeOverOnceMore) != nil):
					return
				case err == nil:
					done = true
					continue
				}
				r.Log.Debug("cannot take over a run's tasks at present", zap.String("run", p.Run.WorkflowID), zap.Error(err))
				if again.Sleep(ctx) != nil {
					return
				}
			}
		})
	}
}
