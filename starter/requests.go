package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Cancel stops the run with its stop signal and grace period. Wait then returns the verdict
// cancelled. Cancel returns once it has made the request; it does not wait for the run's end.
func (r *Run) Cancel(ctx context.Context) error {
	for {
		execution := r.latest()
		if err := r.client.CancelWorkflow(ctx, r.ID, execution); err != nil || execution == "" {
			return r.requestError(err)
		}
		// Unlike other requests, a cancellation succeeds even on a closed execution, so describe
		// looks for the next execution.
		if _, err := r.describe(ctx); err != nil || r.latest() == execution {
			return r.requestError(err)
		}
	}
}

// isPaused reports whether Temporal has paused the run.
func (c *chain) isPaused(ctx context.Context) bool {
	d, err := c.describe(ctx)
	return err == nil && workflowstatus.IsPaused(d.GetWorkflowExecutionInfo().GetStatus())
}

// Terminate ends the run without a result. Its host workers stop its processes immediately, or
// when they return. Prefer [Run.Cancel].
func (r *Run) Terminate(ctx context.Context, reason string) error {
	return r.requestError(r.request(ctx, func(execution string) error {
		return r.client.TerminateWorkflow(ctx, r.ID, execution, reason)
	}))
}

// acceptedWithin limits the time until a run accepts a request. A run with a worker accepts
// immediately, but with many hosts it may take longer to answer.
const acceptedWithin = 15 * time.Second

// beginsWithin limits how long a request waits for a run to start its tasks, because a newly
// submitted run may be about to.
const beginsWithin = 5 * time.Second

// Ask sends a request to a run, such as [spec.UpdateSignalTask], and waits for its answer. If no
// worker executes the run, it returns an [*UnansweredError].
func Ask[Q spec.Request, A any](ctx context.Context, r *Run, u spec.Update[Q, A], q Q) (answer A, err error) {
	try := func() error {
		return r.request(ctx, func(execution string) error {
			accepting, cancel := context.WithTimeout(ctx, acceptedWithin)
			defer cancel()
			handle, err := r.client.UpdateWorkflow(accepting, client.UpdateWorkflowOptions{
				WorkflowID: r.ID, RunID: execution, UpdateName: u.Name, Args: []any{q}, WaitForStage: client.WorkflowUpdateStageAccepted,
			})
			if err != nil {
				return err
			}
			return handle.Get(ctx, &answer)
		})
	}
	again, until := retry.Backoff{First: 20 * time.Millisecond, Most: 500 * time.Millisecond}, time.Now().Add(beginsWithin)
	err = try()
	for hasNotBegun(err) && time.Now().Before(until) && again.Sleep(ctx) == nil {
		err = try()
	}
	if err != nil {
		var none A
		return none, r.requestError(err)
	}
	return answer, nil
}

func hasNotBegun(err error) bool {
	var application *temporal.ApplicationError
	return errors.As(err, &application) && application.Type() == spec.ErrNotBegun
}

// requestError explains why a request was not delivered. It returns the run's own answers
// unchanged.
func (c *chain) requestError(err error) error {
	var application *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &application):
		if strings.HasPrefix(application.Message(), unknownUpdate) && c.isSweepNow() {
			return &RefusedError{Reason: fmt.Sprintf("%s is a sweep, which does not have its own tasks; name a trial, such as %s", c.id, spec.TrialID(c.id, 0)), Invalid: true}
		}
		refused := &RefusedError{Reason: application.Message(), Invalid: application.Type() == spec.ErrInvalidRequest}
		if application.HasDetails() {
			_ = application.Details(&refused.Tasks) // another version may send different details
		}
		return refused
	case isNotFound(err):
		if c.exists() {
			return &EndedError{RunID: c.id}
		}
		return &NotFoundError{RunID: c.id}
	case IsError[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err), errors.Is(err, context.DeadlineExceeded):
		return &UnansweredError{RunID: c.id, Cause: err}
	default:
		return fmt.Errorf("run %s: %w", c.id, err)
	}
}

// unknownUpdate is the start of a workflow's answer to an update that it does not implement.
const unknownUpdate = "unknown update "

func (c *chain) isSweepNow() bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	of, err := c.isSweep(ctx)
	return err == nil && of
}

// exists distinguishes an ended run from one that never existed, for which the server returns
// the same error.
func (c *chain) exists() bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	_, err := c.describe(ctx)
	return err == nil
}
