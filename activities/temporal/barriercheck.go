package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/rendezvous"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// barrierQueryTimeout bounds the question to the run, which its workflow worker
// may not be there to answer.
const barrierQueryTimeout = 10 * time.Second

// BarrierCheck is the activity that looks whether tasks that are missing at a barrier can still come,
// by asking the run. While all of them can it fails with an error that has the
// server try it again: attempts cost the round no history.
func (s *Barriers) BarrierCheck(ctx context.Context, in spec.BarrierCheckInput) (spec.BarrierCheckOutput, error) {
	var out spec.BarrierCheckOutput
	ctx, cancel := context.WithTimeout(ctx, barrierQueryTimeout)
	defer cancel()
	d, err := s.server.DescribeRun(ctx, in.Run.WorkflowID, in.Run.RunID)
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		out.RunEnded = fmt.Sprintf("there is no run %s any more", in.Run.WorkflowID)
		return out, nil
	case err != nil:
		return out, err
	}
	switch d.GetWorkflowExecutionInfo().GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
	case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
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
	out = rendezvous.JudgeMissing(status, in)
	if out.RunEnded == "" && len(out.Ended) == 0 {
		return out, temporal.NewApplicationErrorWithOptions("all who are missing can still come", spec.ErrBarrierUnchanged,
			temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
	}
	return out, nil
}
