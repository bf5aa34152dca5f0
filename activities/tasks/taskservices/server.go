package taskservices

import (
	"context"
	"errors"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Runs sends requests of tasks to their runs.
type Runs interface {
	// Update sends a request to a run, which is named by its first execution, and decodes the
	// answer into answer. A [RefusedError] is final; after any other error the request may be
	// retried.
	Update(ctx context.Context, run runkey.Run, q RunUpdate, answer any) error
	// Tasks returns the names of the run's tasks, including those outside its spec.
	Tasks(ctx context.Context, run runkey.Run) ([]string, error)
}

// RunUpdate is a request to a run. Requests with the same ID are the same request, and get
// the same answer.
type RunUpdate struct {
	ID, Name string
	Input    any
}

// RefusedError says why a run, or its server, refused a request.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return e.Message }

// Queues gives hosts access to the queues of closures.
type Queues interface {
	// Tell sends a message to the queue of a run, and opens the queue with that input if
	// there is none. It returns [ErrQueueClosed] if the queue has ended.
	Tell(ctx context.Context, in closure.QueueInput, m closure.ServingMessage) error
	// Left reports whether the queue of a run is open.
	Left(ctx context.Context, run spec.RunRef) (bool, error)
	// Over returns how a run has ended, in any of its executions, or an empty string while the
	// run is open.
	Over(ctx context.Context, run spec.RunRef) (string, error)
	// End tells a queue, if there is one, that its run has ended, and waits until the queue
	// has ended, too.
	End(ctx context.Context, run spec.RunRef, over string) error
	// Client returns a client of the queue of a run. It fails while the server is not
	// connected.
	Client(run spec.RunRef) (*closurequeue.Client, error)
}

// ErrQueueClosed is returned for the queue of a run that has ended.
var ErrQueueClosed = errors.New("the call queue has ended")
