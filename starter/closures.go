package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// Calls returns a client for the run's queue of calls. The run must be open. Calls waits while the
// server is unreachable.
func (r *Run) Calls(ctx context.Context) (c *closurequeue.Client, err error) {
	err = servererror.Patiently(ctx, func(error) {}, func() error {
		c, err = r.calls(ctx)
		return err
	})
	return c, err
}

func (r *Run) calls(ctx context.Context) (*closurequeue.Client, error) {
	taskQueue, in, open, err := r.queue(ctx)
	switch {
	case err != nil:
		return nil, err
	case !open:
		return nil, &EndedError{RunID: r.ID}
	}
	c := closurequeue.NewClient(r.client, in.Run)
	c.TaskQueue = taskQueue
	c.Opening = func() (closure.QueueInput, error) { return in, nil }
	return c, nil
}

// queue returns the run's task queue, the input of its closure queue, and whether the run is
// open. For an ended run, the input only identifies the run.
func (r *Run) queue(ctx context.Context) (taskQueue string, in closure.QueueInput, open bool, err error) {
	d, err := r.describe(ctx)
	if err != nil {
		return "", in, false, r.requestError(err)
	}
	info := d.GetWorkflowExecutionInfo()
	run := r.firstOf(info)
	if info.GetCloseTime() != nil {
		return info.GetTaskQueue(), closure.QueueInput{Run: run}, false, nil
	}
	s, err := r.spec(ctx, info.GetExecution().GetRunId())
	if err != nil {
		return "", in, false, r.requestError(err)
	}
	in, err = closure.NewQueueInput(s, run, os.Getenv)
	return info.GetTaskQueue(), in, true, err
}

// spec returns the run's spec, which is in the first event of each execution's history.
func (c *chain) spec(ctx context.Context, execution string) (*spec.RunSpec, error) {
	first, err := c.client.GetWorkflowHistory(ctx, c.id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
	if err != nil {
		return nil, err
	}
	started := first.GetWorkflowExecutionStartedEventAttributes()
	input := started.GetInput().GetPayloads()
	if len(input) == 0 {
		return nil, fmt.Errorf("run %s was started without a spec", c.id)
	}
	if started.GetWorkflowType().GetName() == spec.SweepWorkflowType {
		var of sweep.Spec
		if err := converter.GetDefaultDataConverter().FromPayload(input[0], &of); err != nil {
			return nil, err
		}
		return of.Run, nil
	}
	s, err := spec.Decode(input[0].GetData())
	if err != nil {
		// The run accepted the spec, so it is valid, but a later version of clusterrun added
		// fields.
		s = &spec.RunSpec{}
		if json.Unmarshal(input[0].GetData(), s) != nil {
			return nil, err
		}
	}
	return s, nil
}

// firstOf identifies the run by its first execution, as its closure queue does.
func (c *chain) firstOf(info *workflowpb.WorkflowExecutionInfo) spec.RunRef {
	return spec.RunRef{WorkflowID: c.id, RunID: cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId())}
}
