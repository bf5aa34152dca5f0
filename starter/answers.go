package starter

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
)

// Answers checks whether a worker executes the run's workflow. It returns an [*UnansweredError]
// if the run is open and no worker does. It returns nil if the run has ended, because that
// needs no worker.
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
