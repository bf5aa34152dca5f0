package server

import (
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// IsContact reports whether the result of a heartbeat is the server's answer about a task that its
// run still has. Other errors do not prove that, because the SDK returns its own errors when
// connections are refused, and a server that does not know the attempt may have given the task to
// another worker.
func IsContact(err error) bool {
	return err == nil || temporal.IsCanceledError(err) ||
		errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// IsGone reports whether the server no longer recognizes the attempt of a heartbeat.
func IsGone(err error) bool {
	var notFound *serviceerror.NotFound
	var noNamespace *serviceerror.NamespaceNotFound
	return errors.As(err, &notFound) || errors.As(err, &noNamespace)
}
