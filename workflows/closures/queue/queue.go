package queue

import (
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
)

// Workflow is a run's queue, of type [closure.QueueType]; its ID is [closure.QueueID]. packed is
// the packed state of the last execution, or nil for the first.
func Workflow(ctx workflow.Context, in closure.QueueInput, packed []byte) (*closure.QueueResult, error) {
	q := &queue{in: in, cancels: map[int]workflow.CancelFunc{}}
	if packed == nil {
		q.machine = rules.New(rules.ConfigOf(in))
	} else {
		state, err := unpack(packed)
		if err != nil {
			return nil, temporal.NewNonRetryableApplicationError("cannot read the queue: "+err.Error(), "DamagedQueue", err)
		}
		q.machine = rules.Restore(rules.ConfigOf(in), state)
	}
	if err := q.register(ctx); err != nil {
		return nil, err
	}
	return q.run(ctx)
}

// queue is one execution.
type queue struct {
	in      closure.QueueInput
	machine *rules.Queue
	// cancels maps batch numbers to their open activities.
	cancels map[int]workflow.CancelFunc
	// stayed is the length of the history when the queue was last found too large to continue as
	// new, or 0.
	stayed  int
	changed bool
}

func (q *queue) run(ctx workflow.Context) (*closure.QueueResult, error) {
	// A cancellation closes the queue just as the end of the run does, so that clients do not wait
	// for it.
	free, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(free, q.listen)
	q.check(free)
	if done := ctx.Done(); done != nil {
		workflow.Go(free, func(free workflow.Context) {
			done.Receive(free, nil)
			q.machine.RunEnded("the queue was cancelled")
			q.changed = true
		})
	}
	for {
		q.carryOut(free)
		if q.machine.Ended() {
			if err := yield(free); err != nil {
				return nil, err
			}
			return &closure.QueueResult{Counts: q.machine.Status().Counts}, nil
		}
		if q.shouldContinue(free) {
			if err := q.continueAsNew(free); err != nil {
				return nil, err
			}
			continue
		}
		if err := workflow.Await(free, func() bool { return q.changed }); err != nil {
			return nil, err
		}
		q.changed = false
	}
}

// listen receives the hosts' messages.
func (q *queue) listen(ctx workflow.Context) {
	signals := workflow.GetSignalChannel(ctx, closure.SignalServing)
	for {
		var m closure.ServingMessage
		signals.Receive(ctx, &m)
		q.machine.Now(workflow.Now(ctx))
		q.machine.Serving(m)
		q.changed = true
	}
}

// yield returns once every other coroutine has run, so that all signals of this workflow task are
// received. Otherwise, signals that arrived together with the event that ends this execution would
// be lost, because the main coroutine runs first and a signal that was already handed to another
// coroutine is no longer in the channel. The coroutine that yield starts runs last.
func yield(ctx workflow.Context) error {
	all := false
	workflow.Go(ctx, func(workflow.Context) { all = true })
	return workflow.Await(ctx, func() bool { return all })
}

// carryOut carries out the machine's actions.
func (q *queue) carryOut(ctx workflow.Context) {
	for _, a := range q.machine.Actions() {
		if !a.Cancel {
			q.batch(ctx, a.Batch)
		} else if cancel := q.cancels[a.Batch.Number]; cancel != nil {
			cancel()
		}
	}
}

func (q *queue) log(ctx workflow.Context) log.Logger { return workflow.GetLogger(ctx) }
