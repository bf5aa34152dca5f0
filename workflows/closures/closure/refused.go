package closure

import (
	"errors"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// RefusedError reports that a queue does not take a request.
type RefusedError struct {
	// Reason is an [*spec.InvalidRequestError] if fields of the request are wrong.
	Reason error
}

// Error returns the problem if there is only one, or else the text of the reason.
func (e *RefusedError) Error() string {
	var invalid *spec.InvalidRequestError
	if errors.As(e.Reason, &invalid) && len(invalid.Problems) == 1 && invalid.More == 0 {
		return invalid.Problems[0].String()
	}
	return e.Reason.Error()
}

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }

// Renamed returns err with other paths for the wrong fields, since the caller may have its own
// names for them. An error that names no fields stays unchanged.
func Renamed(err error, path func(string) string) error {
	var invalid *spec.InvalidRequestError
	if !errors.As(err, &invalid) {
		return err
	}
	renamed := &spec.InvalidRequestError{Problems: make([]spec.Problem, len(invalid.Problems)), More: invalid.More}
	for i, p := range invalid.Problems {
		p.Path = path(p.Path)
		renamed.Problems[i] = p
	}
	return &RefusedError{renamed}
}
