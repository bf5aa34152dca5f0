package taskservices

import (
	"context"
	"errors"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Runs are the runs themselves, which are asked for what their tasks want.
type Runs interface {
	// Update makes a request to a run, which is named by its first execution, and reads
	// its answer into answer. A [RefusedError] is final; after any other error it may be
	// made again.
	Update(ctx context.Context, run runkey.Run, q RunUpdate, answer any) error
	// Tasks returns the names of the run's tasks, also of those outside its spec.
	Tasks(ctx context.Context, run runkey.Run) ([]string, error)
}

// RunUpdate is a request to a run. With the same ID it is the same request, and is
// answered the same.
type RunUpdate struct {
	ID, Name string
	Input    any
}

// RefusedError says why a run, or its server, refused a request.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return e.Message }

// Queues are the queues of closures, as hosts speak with them.
type Queues interface {
	// Tell gives the queue of a run a message, and opens it with that input if there is
	// none. It returns [ErrQueueClosed] if the queue has ended.
	Tell(ctx context.Context, in closure.QueueInput, m closure.ServingMessage) error
	// Left reports whether the queue of a run is open.
	Left(ctx context.Context, run spec.RunRef) (bool, error)
	// Over says how a run has ended, whichever execution it was in. It is empty while
	// the run is open.
	Over(ctx context.Context, run spec.RunRef) (string, error)
	// End tells a queue, if there is one, that its run has ended, and waits until the
	// queue has ended, too.
	End(ctx context.Context, run spec.RunRef, over string) error
	// Client returns a client of the queue of a run. It fails while there is no
	// connection to the server.
	Client(run spec.RunRef) (*closurequeue.Client, error)
	// Open opens the queue of a client with that input if there is none.
	Open(ctx context.Context, c *closurequeue.Client, in closure.QueueInput) error
}

// ErrQueueClosed is returned for the queue of a run that has ended.
var ErrQueueClosed = errors.New("the queue of closures has ended")
