package closure

import (
	"errors"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// RefusedError reports that a queue refused a request.
type RefusedError struct {
	// Reason is an [*spec.InvalidRequestError] if fields of the request are wrong.
	Reason error
}

// Error returns the problem if there is only one, and otherwise the reason's message.
func (e *RefusedError) Error() string {
	var invalid *spec.InvalidRequestError
	if errors.As(e.Reason, &invalid) && len(invalid.Problems) == 1 && invalid.More == 0 {
		return invalid.Problems[0].String()
	}
	return e.Reason.Error()
}

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }
