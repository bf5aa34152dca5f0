package closurequeue

import (
	"context"
	"errors"
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
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return e.Message }

// update sends a request to the queue until it has an answer: a server may be away,
// and the execution that took the request may have continued as new meanwhile.
func update[A any](ctx context.Context, q *Queue, name string, request any) (A, error) {
	delay := firstRetry
	for {
		var a A
		h, err := q.server.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: q.id, UpdateName: name, Args: []any{request}, WaitForStage: client.WorkflowUpdateStageCompleted,
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
		if err := q.final(ctx, err); err != nil {
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-time.After(delay):
		}
		delay = min(2*delay, maxRetry)
	}
}

// final is the error that another try would not change, if this is one.
func (q *Queue) final(ctx context.Context, err error) error {
	var (
		application *temporal.ApplicationError
		notFound    *serviceerror.NotFound
		invalid     *serviceerror.InvalidArgument
		denied      *serviceerror.PermissionDenied
		namespace   *serviceerror.NamespaceNotFound
	)
	switch {
	case errors.As(err, &application):
		if application.Type() == spec.ErrRefused {
			return &RefusedError{Message: application.Message()}
		}
		// Continued as new, or about to.
		if application.Type() == spec.ErrTryAgain {
			return nil
		}
		return q.ifClosed(ctx, nil)
	case errors.As(err, &notFound):
		return q.ifClosed(ctx, err)
	case errors.As(err, &invalid), errors.As(err, &denied), errors.As(err, &namespace):
		return err
	}
	return nil
}

// ifClosed tells a queue that has ended from one that went on as another execution.
// unknown is returned where there is none at all.
func (q *Queue) ifClosed(ctx context.Context, unknown error) error {
	d, err := q.server.DescribeWorkflowExecution(ctx, q.id, "")
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return unknown
	case err != nil:
		return nil //nolint:nilerr // nobody knows, and another try may tell
	}
	switch d.GetWorkflowExecutionInfo().GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return nil
	}
	return ErrRunEnded
}
