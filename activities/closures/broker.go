package closures

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Config is what a [Broker] needs.
type Config struct {
	Log *zap.Logger
	// Restart stops the process of a task, which does not end a call that was
	// cancelled; the task has another one afterwards. [Broker.ProcessEnded] follows.
	Restart func(task string)
	// Changed is told all processes that serve, whenever that changes.
	Changed func([]spec.ServingTask)
}

// Broker has the closures of one run that its tasks on this host are to call.
type Broker struct {
	Config
}

// NewBroker makes one that holds nothing.
func NewBroker(c Config) *Broker { return &Broker{c} }

var errNotYet = errors.New("not there yet")

// Lease brings closures and returns some of their outcomes.
func (b *Broker) Lease(ctx context.Context, in spec.Lease) (spec.LeaseResult, error) {
	return spec.LeaseResult{}, errNotYet
}

// Cancel has closures not be called any more. It does not wait for those that are
// being called.
func (b *Broker) Cancel(in spec.CancelLease) {}

// ProcessEnded says that a process of a task has ended; none: all processes of it.
func (b *Broker) ProcessEnded(task, process string) {}

// Next answers a process of a task.
func (b *Broker) Next(ctx context.Context, task string, in taskapi.ClosuresRequest) (taskapi.ClosuresAnswer, error) {
	return taskapi.ClosuresAnswer{}, taskapi.ErrClosuresAway
}

// Close ends all that waits. Processes ask again, the next broker.
func (b *Broker) Close() {}
