package starter

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

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
	run := r.firstOf(info)
	if info.GetCloseTime() != nil {
		return closurequeue.Attach(r.client, run), nil
	}
	return closurequeue.Open(ctx, r.client, run, closurequeue.Options{TaskQueue: info.GetTaskQueue()})
}

// ExistingClosures is the queue of the run's closures for those who only want to know
// something: none is made, and where there is none [closurequeue.ErrNoQueue] is the
// error of what is asked. The caller closes it.
func (r *Run) ExistingClosures(ctx context.Context) (*closurequeue.Queue, error) {
	d, err := r.describe(ctx)
	if err != nil {
		return nil, r.requestError(err)
	}
	return closurequeue.Attach(r.client, r.firstOf(d.GetWorkflowExecutionInfo())), nil
}

// TerminateClosures tears down the queue of closures of a run that was terminated and
// whose host workers are gone for good: nobody is there to end it in order. There may
// be none.
func (r *Run) TerminateClosures(ctx context.Context, reason string) error {
	d, err := r.describe(ctx)
	if err != nil {
		return r.requestError(err)
	}
	run := r.firstOf(d.GetWorkflowExecutionInfo())
	err = r.client.TerminateWorkflow(ctx, spec.ClosureQueueID(run.WorkflowID, run.RunID), "", reason)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil
	}
	return err
}

// firstOf names the run by its first execution, as its queue does.
func (r *Run) firstOf(info *workflowpb.WorkflowExecutionInfo) spec.BarrierRun {
	run := spec.BarrierRun{WorkflowID: r.ID, RunID: info.GetFirstRunId()}
	if run.RunID == "" {
		run.RunID = info.GetExecution().GetRunId()
	}
	return run
}
