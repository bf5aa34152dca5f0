package starter

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Run is a handle on one run.
type Run struct {
	// ID is the run ID, which is the workflow ID.
	ID string
	// ExecutionID is Temporal's run ID of the run's first execution. If empty, the handle stands
	// for the latest run with that ID.
	ExecutionID string

	*chain
}

// Get returns a handle on a run that was started earlier, by any client. It does not contact the
// server; the handle's first use shows whether the run exists.
func Get(c client.Client, id, executionID string) *Run {
	return &Run{ID: id, ExecutionID: executionID, chain: &chain{client: c, id: id, first: executionID}}
}

// Client returns the client that the handle uses.
func (r *Run) Client() client.Client { return r.client }

// Describe returns the server's description of the run's latest execution.
func (r *Run) Describe(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := r.describe(ctx)
	return d, r.requestError(err)
}

// Wait waits for the run to finish and returns its result. The error is nil only after success.
// Wait returns an [*Error] with the result, and a [*TerminatedError] without one. Wait continues
// while the server is unreachable.
func (r *Run) Wait(ctx context.Context) (*spec.RunResult, error) {
	return r.WaitNotify(ctx, func(error) {})
}

// WaitNotify is like Wait, but calls notify with the error when the server stops answering, and
// with nil when it answers again. It also calls notify with a [*StuckError] when the run is
// stuck, and with nil when the run continues.
func (r *Run) WaitNotify(ctx context.Context, notify func(error)) (*spec.RunResult, error) {
	watch := newWatch(ctx, (&looker{run: r}).look, notify)
	defer watch.stop()
	for {
		attempt, cancel := watch.untilAnew(ctx)
		var result spec.RunResult
		execution := r.latest()
		err := r.client.GetWorkflow(attempt, r.ID, execution).Get(attempt, &result)
		interrupted := attempt.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && interrupted:
		case err != nil && servererror.IsTransient(err):
			if err := retry.Sleep(ctx, retryEvery); err != nil {
				return nil, err
			}
		case isNotFound(err) && r.goesOnAfter(ctx, execution):
		case err != nil && !isEnd(err) && r.isPaused(ctx):
			if err := retry.Sleep(ctx, retryEvery); err != nil {
				return nil, err
			}
		case err != nil:
			return r.ended(ctx, err)
		default:
			return &result, nil
		}
	}
}

// isEnd reports whether an SDK error means that the run has ended. While a workflow is paused,
// the SDK receives events that it does not expect.
func isEnd(err error) bool {
	return isNotFound(err) || IsError[*temporal.TerminatedError](err) || runs.ResultOf(err) != nil
}

// ended returns the result in a workflow error's details.
func (r *Run) ended(ctx context.Context, err error) (*spec.RunResult, error) {
	switch {
	case isNotFound(err):
		return nil, &NotFoundError{RunID: r.ID}
	case IsError[*temporal.TerminatedError](err):
		return nil, r.terminated(ctx)
	}
	result := runs.ResultOf(err)
	if result == nil {
		return nil, fmt.Errorf("wait for run %s: %w", r.ID, err)
	}
	return result, &Error{RunID: r.ID, Result: result, Cause: err}
}

// terminated returns the error for a terminated run, with the reason and author from the last
// event.
func (c *chain) terminated(ctx context.Context) error {
	out := &TerminatedError{RunID: c.id}
	_, _ = c.describe(ctx) // finds the last execution
	events := c.client.GetWorkflowHistory(ctx, c.id, c.latest(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if events.HasNext() {
		if last, err := events.Next(); err == nil {
			if a := last.GetWorkflowExecutionTerminatedEventAttributes(); a != nil {
				out.Reason, out.By = spec.EscapeControl(a.GetReason()), a.GetIdentity()
			}
		}
	}
	return out
}
