package starter

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// IsSweep reports whether the run is a sweep.
func (r *Run) IsSweep(ctx context.Context) (bool, error) {
	of, err := r.isSweep(ctx)
	if err != nil {
		return false, r.requestError(err)
	}
	return of, nil
}

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
		return nil, &NotSweepError{r.ID}
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

// NotSweepError reports that a run is not a sweep.
type NotSweepError struct{ RunID string }

func (e *NotSweepError) Error() string {
	return fmt.Sprintf("run %s is no sweep", e.RunID)
}

// StopTrials stops an open sweep's trials with numbers that match a [path.Match] pattern. It
// skips trials that have not started.
func (r *Run) StopTrials(ctx context.Context, pattern string) error {
	return r.signal(ctx, spec.SignalStopTrials, pattern)
}

// RetryTrials requeues the failed and skipped trials of an open sweep.
func (r *Run) RetryTrials(ctx context.Context) error {
	return r.signal(ctx, spec.SignalRetryTrials, nil)
}

func (r *Run) signal(ctx context.Context, name string, arg any) error {
	err := r.request(ctx, func(string) error {
		// Address the current execution, because a sweep may continue as new at any moment.
		return r.client.SignalWorkflow(ctx, r.ID, "", name, arg)
	})
	if isNotFound(err) {
		return &EndedError{r.ID}
	}
	return err
}
