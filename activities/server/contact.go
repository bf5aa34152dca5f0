package server

import (
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// IsContact reports whether the result of a heartbeat is the server's answer about an attempt that
// is still current. Other errors do not count: the SDK returns errors of its own when connections
// are refused, and a server that does not recognize the attempt may have given the task to another
// worker.
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
