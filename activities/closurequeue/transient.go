package closurequeue

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
)

// Transient reports whether an error of the Temporal server may pass with time: the server is
// away, busy, or did not answer in time.
func Transient(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		deadline    *serviceerror.DeadlineExceeded
		exhausted   *serviceerror.ResourceExhausted
		cancelled   *serviceerror.Canceled
	)
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &exhausted) ||
		errors.As(err, &cancelled) || errors.Is(err, context.DeadlineExceeded)
}
