package queue

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// register installs the handlers. The update may take arbitrarily long. register must run before
// the workflow first blocks.
func (q *queue) register(ctx workflow.Context) error {
	if err := workflow.SetQueryHandlerWithOptions(ctx, closure.QueryQueue,
		func() (closure.QueueStatus, error) { return q.machine.Status(), nil },
		workflow.QueryHandlerOptions{Description: "The queue's state, and which tasks serve."}); err != nil {
		return err
	}
	handle := func(ctx workflow.Context, r closure.SyncRequest) (closure.SyncAnswer, error) {
		q.machine.Now(workflow.Now(ctx))
		call := q.machine.Sync(r)
		q.changed = true
		if err := workflow.Await(ctx, call.Ready); err != nil {
			return closure.SyncAnswer{}, err
		}
		a, err := call.Answer()
		if err != nil {
			err = refused(err)
		}
		return a, err
	}
	validate := func(r closure.SyncRequest) error {
		if err := r.Validate(); err != nil {
			return refused(err)
		}
		return nil
	}
	// A queue that continues as new drops requests, and the clients resend them.
	return workflow.SetUpdateHandlerWithOptions(ctx, closure.UpdateSync, handle, workflow.UpdateHandlerOptions{
		Validator: validate, Description: "Schedules closures, waits for them, and returns outcomes.",
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
