package queue

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// errContinuing refuses requests while the queue is about to continue as new.
// Clients send them again.
var errContinuing = errors.New("the call queue is continuing as new; try again")

// register installs the handlers. It must run before the workflow first blocks.
func (q *queue) register(ctx workflow.Context) error {
	if err := workflow.SetQueryHandlerWithOptions(ctx, closure.QueryQueue, q.status(ctx),
		workflow.QueryHandlerOptions{Description: "The status of the queue, and which tasks serve."}); err != nil {
		return err
	}
	return errors.Join(
		waitingUpdate(ctx, q, closure.UpdateSchedule, "Schedules closures; waits while the queue is full.", q.machine.CheckSchedule, q.machine.Schedule),
		waitingUpdate(ctx, q, closure.UpdateJoin, "Waits until nothing is queued or executing.", q.machine.CheckWait, q.machine.Join),
		waitingUpdate(ctx, q, closure.UpdateDone, "Reports whether nothing is queued or executing.", q.machine.CheckWait, q.machine.Done),
		promptUpdate(ctx, q, closure.UpdateWithdraw, "Cancels a join or done.", func(r closure.WaitRequest) (closure.WithdrawAnswer, error) {
			return q.machine.Withdraw(r), nil
		}),
		promptUpdate(ctx, q, closure.UpdateCreateResource, "Creates a per-worker resource.", q.machine.CreateResource),
		promptUpdate(ctx, q, closure.UpdateReleaseResources, "Releases per-worker resources.", func(r closure.ReleaseRequest) (closure.ReleaseAnswer, error) {
			if err := q.machine.CheckRelease(r); err != nil {
				return closure.ReleaseAnswer{}, err
			}
			return q.machine.ReleaseResources(r), nil
		}),
		promptUpdate(ctx, q, closure.UpdateCancelClosures, "Cancels closures.", func(r closure.CancelRequest) (closure.CancelAnswer, error) {
			return q.machine.Cancel(r), nil
		}),
	)
}

// waitingUpdate installs the handler of a request whose answer may take any time. A queue
// that continues as new drops it, and the client sends it again.
func waitingUpdate[Q, A any](ctx workflow.Context, q *queue, name, description string, check func(Q) error, do func(Q) *rules.Call[A]) error {
	handle := func(ctx workflow.Context, r Q) (A, error) {
		call := do(r)
		q.changed = true
		if err := workflow.Await(ctx, call.Ready); err != nil {
			var none A
			return none, err
		}
		a, err := call.Answer()
		if errors.Is(err, rules.ErrWithdrawn) {
			return a, temporal.NewApplicationError(err.Error(), spec.ErrTryAgain)
		}
		if err != nil {
			return a, refused(err)
		}
		return a, nil
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, name, handle, workflow.UpdateHandlerOptions{
		Validator: validating(q, check), Description: description,
		UnfinishedPolicy: workflow.HandlerUnfinishedPolicyAbandon,
	})
}

// promptUpdate installs the handler of a request that is answered at once.
func promptUpdate[Q, A any](ctx workflow.Context, q *queue, name, description string, do func(Q) (A, error)) error {
	handle := func(_ workflow.Context, r Q) (A, error) {
		a, err := do(r)
		q.changed = true
		if err != nil {
			return a, refused(err)
		}
		return a, nil
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, name, handle, workflow.UpdateHandlerOptions{
		Validator: validating[Q](q, nil), Description: description,
	})
}

// refused returns an error in the form that updates return, with the fields that are wrong.
func refused(err error) error {
	var invalid *spec.InvalidRequestError
	if errors.As(err, &invalid) {
		return temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrInvalidRequest, nil, *invalid)
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrRefused, nil)
}

// validating returns a validator, which refuses requests before they cost any history.
func validating[Q any](q *queue, check func(Q) error) func(workflow.Context, Q) error {
	return func(_ workflow.Context, r Q) error {
		if q.continuing {
			return temporal.NewApplicationError(errContinuing.Error(), spec.ErrTryAgain)
		}
		if check != nil {
			if err := check(r); err != nil {
				return refused(err)
			}
		}
		return nil
	}
}
