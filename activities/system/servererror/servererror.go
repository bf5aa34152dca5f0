// Package servererror interprets the Temporal server's errors for a request. They decide whether to
// retry it, unchanged or for another execution of the workflow.
package servererror

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// IsTransient reports whether an error may pass with time: the server is away, busy, or did not
// answer in time.
func IsTransient(err error) bool {
	return is[*serviceerror.Unavailable](err) || is[*serviceerror.DeadlineExceeded](err) ||
		is[*serviceerror.ResourceExhausted](err) || is[*serviceerror.Canceled](err) || errors.Is(err, context.DeadlineExceeded)
}

// IsMoving reports whether a request was not accepted because the workflow is about to continue in
// another execution. If something happened to the workflow at that very moment, the server fails
// the workflow task, and the request with it.
func IsMoving(err error) bool {
	application, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && application.Type() == spec.ErrTryAgain || is[*serviceerror.WorkflowNotReady](err)
}

// IsNotFound reports whether the server does not know the execution, or the execution is closed.
func IsNotFound(err error) bool { return is[*serviceerror.NotFound](err) }

// IsRefused reports whether the server permanently refuses an update or a start, because it is
// invalid, not allowed, or over the execution's limit of updates. A query fails with the last of
// these errors if no worker has polled lately; see [IsUnpolled].
func IsRefused(err error) bool {
	return is[*serviceerror.InvalidArgument](err) || is[*serviceerror.PermissionDenied](err) ||
		is[*serviceerror.NamespaceNotFound](err) || is[*serviceerror.FailedPrecondition](err)
}

// IsUnpolled reports whether a query failed because no worker has polled for its workflow
// lately.
func IsUnpolled(err error) bool { return is[*serviceerror.FailedPrecondition](err) }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
