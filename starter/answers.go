package starter

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
)

// Answers asks whether somebody executes the run's workflow. It is an
// [*UnansweredError] where the run is open and nobody does, and nil for a run that
// has ended, which needs nobody any more.
func (r *Run) Answers(ctx context.Context) error {
	d, err := r.describe(ctx)
	if err != nil {
		return r.requestError(err)
	}
	if d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil
	}
	if _, err := r.query(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &UnansweredError{RunID: r.ID, Cause: err}
	}
	return nil
}
