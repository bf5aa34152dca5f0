// Package servererror interprets the errors with which the Temporal server answers a request. They
// determine whether to retry the request, either unchanged or for another execution of the
// workflow.
package servererror

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// IsTransient reports whether an error may disappear with time, because the server is unreachable,
// busy, or did not answer in time.
func IsTransient(err error) bool {
	return is[*serviceerror.Unavailable](err) || is[*serviceerror.DeadlineExceeded](err) ||
		is[*serviceerror.ResourceExhausted](err) || is[*serviceerror.Canceled](err) || errors.Is(err, context.DeadlineExceeded)
}

// IsMoving reports whether a request was not accepted because the workflow is about to continue in
// another execution. If an event arrived at that very moment, the server fails the workflow task,
// and with it the request.
func IsMoving(err error) bool {
	application, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && application.Type() == spec.ErrTryAgain || is[*serviceerror.WorkflowNotReady](err)
}

// IsNotFound reports whether the execution does not exist on the server or is closed.
func IsNotFound(err error) bool { return is[*serviceerror.NotFound](err) }

// IsRefused reports whether the server permanently refuses an update or a start, because it is
// invalid, not permitted, or exceeds the execution's limit on updates. A query fails with the last
// of these errors if no worker has polled recently; see [IsUnpolled].
func IsRefused(err error) bool {
	return is[*serviceerror.InvalidArgument](err) || is[*serviceerror.PermissionDenied](err) ||
		is[*serviceerror.NamespaceNotFound](err) || is[*serviceerror.FailedPrecondition](err)
}

// IsUnpolled reports whether a query failed because no worker has recently polled for its workflow.
func IsUnpolled(err error) bool { return is[*serviceerror.FailedPrecondition](err) }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
