package server

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/barrier"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// barrierQueryTimeout limits the query to the run, which may lack a workflow worker.
const barrierQueryTimeout = 10 * time.Second

// BarrierCheck is an activity that asks the run whether the tasks missing at a barrier can still
// arrive. It returns once any of them cannot.
func (s *Barriers) BarrierCheck(ctx context.Context, in spec.BarrierCheckInput) (out spec.BarrierCheckOutput, err error) {
	unchanged := temporal.NewApplicationErrorWithOptions("all missing tasks can still arrive", spec.ErrBarrierUnchanged,
		temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
	err = watch(ctx, watchEvery, unchanged, func(ctx context.Context) (bool, error) {
		out, err = s.lookForMissing(ctx, in)
		return out.RunEnded != "" || len(out.Ended) > 0, err
	})
	return out, err
}

// lookForMissing returns which of the missing tasks can no longer arrive.
func (s *Barriers) lookForMissing(ctx context.Context, in spec.BarrierCheckInput) (out spec.BarrierCheckOutput, err error) {
	ctx, cancel := context.WithTimeout(ctx, barrierQueryTimeout)
	defer cancel()
	d, err := s.server.DescribeRun(ctx, in.Run.WorkflowID, in.Run.RunID)
	switch {
	case servererror.IsNotFound(err):
		out.RunEnded = fmt.Sprintf("run %s no longer exists", in.Run.WorkflowID)
		return out, nil
	case err != nil:
		return out, err
	}
	switch s := d.GetWorkflowExecutionInfo().GetStatus(); {
	case workflowstatus.IsOpen(s):
	case workflowstatus.Continues(s):
		out.RunEnded = in.Run.Over()
		return out, nil
	default:
		out.RunEnded = fmt.Sprintf("run %s has ended", in.Run.WorkflowID)
		return out, nil
	}
	status, err := s.server.status(ctx, d)
	if err != nil {
		return out, err
	}
	return barrier.JudgeMissing(status, in), nil
}
