package closurequeue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// tries is the time between a request's retries.
var tries = retry.Backoff{First: 2 * time.Millisecond, Most: 2 * time.Second}

// ErrNoQueue is returned if a run's queue was never opened.
var ErrNoQueue = errors.New("no task called serve(), and nothing was scheduled")

func (c *Client) noQueue() error {
	return refusal("run %q has no calls: %w", c.run.WorkflowID, ErrNoQueue)
}

// ErrRunEnded is returned if a queue's run has ended.
var ErrRunEnded = errors.New("the run has ended; closures can no longer be scheduled")

// update sends a request to the queue until it is answered, because the server may be away, and
// the execution that received the request may have continued as new. A request that is resent to
// the same execution waits for the answer to the first one.
func update[A any](ctx context.Context, c *Client, name, by string, number uint64, request any) (A, error) {
	var a A
	err := c.patiently(ctx, name, func() error {
		h, err := c.server.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: c.id, UpdateID: fmt.Sprintf("%s/%s/%d", name, by, number), UpdateName: name, Args: []any{request}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err != nil {
			return err
		}
		a = *new(A)
		return h.Get(ctx, &a)
	})
	return a, err
}

// patiently calls try until it succeeds, a retry would not help, or ctx is done.
func (c *Client) patiently(ctx context.Context, what string, try func() error) error {
	var vain vain
	for again := tries; ; {
		began := time.Now()
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if err := c.final(ctx, err); err != nil {
			return err
		}
		if vain.tell(began, err) {
			c.Warn(what, withHint(err))
		}
		if err := again.Sleep(ctx); err != nil {
			return err
		}
	}
}

const (
	// warnAfter is the failing time before a warning, and warnAgain the interval between warnings.
	warnAfter, warnAgain = 5 * time.Second, time.Minute
	// longTry is longer than a failing try takes. If a try took longer, the server had accepted
	// it.
	longTry = 30 * time.Second
)

// vain records how long a request has been failing.
type vain struct{ since, told time.Time }

// tell records a failed try that started at began, and reports whether to warn. An answer of the
// workflow itself is not a failure. It continues in another execution, which is common while a
// join waits.
func (v *vain) tell(began time.Time, err error) bool {
	now := time.Now()
	var application *temporal.ApplicationError
	if v.since.IsZero() || now.Sub(began) > longTry || errors.As(err, &application) {
		v.since, v.told = now, time.Time{}
	}
	if now.Sub(v.since) < warnAfter || now.Sub(v.told) < warnAgain {
		return false
	}
	v.told = now
	return true
}

// withHint adds advice to an error caused by a server setting. By default, the server accepts ten
// concurrent updates of a workflow. Every waiting join is one, and so is every schedule request
// that waits for capacity.
func withHint(err error) error {
	var exhausted *serviceerror.ResourceExhausted
	if errors.As(err, &exhausted) && strings.Contains(exhausted.Message, "in-flight updates") {
		return fmt.Errorf("%w; raise history.maxInFlightUpdates in the server's dynamic configuration, or have fewer coordinators wait at a time", err)
	}
	return err
}

// final returns an error if a retry would not help; otherwise nil.
func (c *Client) final(ctx context.Context, err error) error {
	var application *temporal.ApplicationError
	switch {
	case servererror.IsMoving(err):
		return nil
	case errors.As(err, &application):
		switch application.Type() {
		case spec.ErrRefused, spec.ErrInvalidRequest:
			return refusedBy(application)
		case closure.ErrQueueEnded:
			return ErrRunEnded
		}
		return c.ifClosed(ctx, nil)
	case servererror.IsNotFound(err):
		return c.ifClosed(ctx, c.noQueue())
	case servererror.IsRefused(err):
		return err
	}
	return nil
}

// refusal converts this client's error into the form of a refusal by the queue.
func refusal(format string, args ...any) error {
	return &closure.RefusedError{Reason: fmt.Errorf(format, args...)}
}

// refusedBy returns the queue's refusal, with the invalid fields.
func refusedBy(e *temporal.ApplicationError) error {
	var invalid spec.InvalidRequestError
	if e.HasDetails() && e.Details(&invalid) == nil && len(invalid.Problems) > 0 {
		return &closure.RefusedError{Reason: &invalid}
	}
	return &closure.RefusedError{Reason: errors.New(e.Message())}
}

// ifClosed distinguishes an ended queue from one that continues in another execution. It returns
// unknown if the queue does not exist.
func (c *Client) ifClosed(ctx context.Context, unknown error) error {
	d, err := c.server.DescribeWorkflowExecution(ctx, c.id, "")
	switch {
	case servererror.IsNotFound(err):
		return unknown
	case err != nil || isOpen(d.GetWorkflowExecutionInfo().GetStatus()):
		return nil
	}
	return ErrRunEnded
}

// isOpen reports whether the queue is open, perhaps in another execution.
func isOpen(s enumspb.WorkflowExecutionStatus) bool {
	return workflowstatus.Continues(s)
}
