package starter

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

func (c *chain) isSweep(ctx context.Context) (bool, error) {
	d, err := c.describe(ctx)
	return d.GetWorkflowExecutionInfo().GetType().GetName() == spec.SweepWorkflowType, err
}

// SweepSpec returns the sweep's input.
func (r *Run) SweepSpec(ctx context.Context) (*sweep.Spec, error) {
	d, err := r.describe(ctx)
	if err != nil {
		return nil, r.requestError(err)
	}
	info := d.GetWorkflowExecutionInfo()
	if info.GetType().GetName() != spec.SweepWorkflowType {
		return nil, fmt.Errorf("run %s is not a sweep", r.ID)
	}
	// Every execution has the same spec. The server deletes executions some time after they
	// close.
	first, err := r.client.GetWorkflowHistory(ctx, r.ID, info.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
	if err != nil {
		return nil, fmt.Errorf("read the spec of sweep %s: %w", r.ID, err)
	}
	var s sweep.Spec
	input := first.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := converter.GetDefaultDataConverter().FromPayloads(input, &s); err != nil {
		return nil, fmt.Errorf("read the spec of sweep %s: %w", r.ID, err)
	}
	return &s, nil
}

// countTrials returns a sweep's number of trials according to its spec, or 0 if it was refused.
func (r *Run) countTrials(ctx context.Context) int {
	of, err := r.SweepSpec(ctx)
	if err != nil {
		return 0
	}
	grid, err := of.Grid.Parse()
	if err != nil {
		return 0
	}
	return grid.Len()
}
