package starter

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Closures is the queue of the run's closures: while the run is open, for scheduling,
// and afterwards for the values that are there. The queue is the same however often
// it is asked for. The caller closes it.
func (r *Run) Closures(ctx context.Context) (*closurequeue.Queue, error) {
	d, err := r.describe(ctx)
	if err != nil {
		return nil, r.requestError(err)
	}
	info := d.GetWorkflowExecutionInfo()
	run := spec.BarrierRun{WorkflowID: r.ID, RunID: info.GetFirstRunId()}
	if run.RunID == "" {
		run.RunID = info.GetExecution().GetRunId()
	}
	if info.GetCloseTime() != nil {
		return closurequeue.Attach(r.client, run), nil
	}
	return closurequeue.Open(ctx, r.client, run, closurequeue.Options{TaskQueue: info.GetTaskQueue()})
}
