package starter

import (
	"context"
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Spec returns the run's spec.
func (r *Run) Spec(ctx context.Context) (*spec.RunSpec, error) {
	d, err := r.describe(ctx)
	if err != nil {
		return nil, r.requestError(err)
	}
	info := d.GetWorkflowExecutionInfo()
	s, err := r.spec(ctx, r.firstOf(info).RunID)
	if isNotFound(err) { // the server deletes executions some time after they close
		s, err = r.spec(ctx, info.GetExecution().GetRunId())
	}
	if err != nil {
		return nil, fmt.Errorf("read the spec of run %s: %w", r.ID, err)
	}
	return s, nil
}
