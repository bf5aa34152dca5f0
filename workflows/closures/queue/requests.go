package queue

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// register installs the handlers. It must run before the workflow first blocks.
func (q *queue) register(ctx workflow.Context) error {
	if err := workflow.SetQueryHandlerWithOptions(ctx, closure.QueryQueue,
		func() (closure.QueueStatus, error) { return q.machine.Status(), nil },
		workflow.QueryHandlerOptions{Description: "The status of the queue, and which tasks serve."}); err != nil {
		return err
	}
	return errors.Join(
		update(ctx, q, closure.UpdateSchedule, "Schedules closures; waits while the queue is full.", q.machine.Schedule),
		update(ctx, q, closure.UpdateJoin, "Waits until nothing is queued or executing.", q.machine.Join),
		update(ctx, q, closure.UpdateTake, "Waits for outcomes of the closures of a client.", q.machine.Take),
	)
}

// update installs the handler for a request that may take any time to answer. A queue that
// continues as new drops it, and the client resends it.
func update[Q interface{ Validate() error }, A any](ctx workflow.Context, q *queue, name, description string, do func(Q) *rules.Call[A]) error {
	handle := func(ctx workflow.Context, r Q) (A, error) {
		q.machine.Now(workflow.Now(ctx))
		call := do(r)
		q.changed = true
		if err := workflow.Await(ctx, call.Ready); err != nil {
			var none A
			return none, err
		}
		a, err := call.Answer()
		if err != nil {
			return a, refused(err)
		}
		return a, nil
	}
	validate := func(r Q) error {
		if err := r.Validate(); err != nil {
			return refused(err)
		}
		return nil
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, name, handle, workflow.UpdateHandlerOptions{
		Validator: validate, Description: description,
		UnfinishedPolicy: workflow.HandlerUnfinishedPolicyAbandon,
	})
}

// refused returns an error in the form that updates return, with the invalid fields.
func refused(err error) error {
	var invalid *spec.InvalidRequestError
	if errors.As(err, &invalid) {
		return temporal.NewNonRetryableApplicationError(invalid.Error(), spec.ErrInvalidRequest, nil, *invalid)
	}
	if errors.Is(err, rules.ErrEnded) {
		return temporal.NewNonRetryableApplicationError(err.Error(), closure.ErrQueueEnded, nil)
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrRefused, nil)
}
