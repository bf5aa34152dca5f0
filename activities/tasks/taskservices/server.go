package taskservices

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Runs sends tasks' requests to their runs.
type Runs interface {
	// Update sends a request to a run, identified by its first execution, and decodes the reply
	// into answer. A [RefusedError] is final; after any other error the request may be retried.
	Update(ctx context.Context, run runkey.Run, q RunUpdate, answer any) error
}

// RunUpdate is a request to a run. Requests with the same ID are the same request, and get the
// same answer.
type RunUpdate struct {
	ID, Name string
	Input    any
}

// RefusedError reports why a run or its server refused a request.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return e.Message }
