package closurequeue

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	firstRetry, maxRetry = 2 * time.Millisecond, 2 * time.Second
)

// RefusedError says that the queue does not take a request.
type RefusedError struct {
	Message string
	reason  error // may be nil
}

func (e *RefusedError) Error() string { return e.Message }

func (e *RefusedError) Unwrap() error { return e.reason }

// ErrNoQueue says that a run has none: nobody has opened it.
var ErrNoQueue = errors.New("nothing was scheduled, and no task serves")

func (c *Client) noQueue() error {
	return &RefusedError{Message: fmt.Sprintf("run %s has no queue of closures: %s", c.run.WorkflowID, ErrNoQueue), reason: ErrNoQueue}
}

// ErrRunEnded says that the run of a queue has ended.
var ErrRunEnded = errors.New("the run has ended; its closures cannot be scheduled any more")

// update sends a request to the queue until it has an answer: a server may be away,
// and the execution that took the request may have continued as new meanwhile.
func update[A any](ctx context.Context, c *Client, name string, request any) (A, error) {
	delay := firstRetry
	for {
		var a A
		h, err := c.server.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: c.id, UpdateName: name, Args: []any{request}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = h.Get(ctx, &a)
		}
		if err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return a, ctx.Err()
		}
		if err := c.final(ctx, err); err != nil {
			return a, err
		}
		if err := pause(ctx, &delay); err != nil {
			return a, err
		}
	}
}

// pause waits before another try, twice as long each time.
func pause(ctx context.Context, delay *time.Duration) error {
	t := time.NewTimer(*delay)
	defer t.Stop()
	*delay = min(2**delay, maxRetry)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// final is the error that another try would not change, if this is one.
func (c *Client) final(ctx context.Context, err error) error {
	var (
		application *temporal.ApplicationError
		notFound    *serviceerror.NotFound
		invalid     *serviceerror.InvalidArgument
		denied      *serviceerror.PermissionDenied
		namespace   *serviceerror.NamespaceNotFound
	)
	switch {
	case errors.As(err, &application):
		switch application.Type() {
		case spec.ErrRefused:
			return &RefusedError{Message: application.Message()}
		case spec.ErrTryAgain: // continued as new, or about to
			return nil
		}
		return c.ifClosed(ctx, nil)
	case errors.As(err, &notFound):
		return c.ifClosed(ctx, c.noQueue())
	case errors.As(err, &invalid), errors.As(err, &denied), errors.As(err, &namespace):
		return err
	}
	return nil
}

// ifClosed tells a queue that has ended from one that went on as another execution.
// unknown is returned where there is none at all.
func (c *Client) ifClosed(ctx context.Context, unknown error) error {
	d, err := c.server.DescribeWorkflowExecution(ctx, c.id, "")
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return unknown
	case err != nil || isOpen(d.GetWorkflowExecutionInfo().GetStatus()):
		return nil
	}
	return ErrRunEnded
}

// isOpen: the queue is, if perhaps in another execution.
func isOpen(s enumspb.WorkflowExecutionStatus) bool {
	return s == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || s == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
}
