package starter

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Cancel stops the run with its stop signal and grace; Wait then returns the verdict cancelled.
// Cancel returns when the request is made, not when the run has ended.
func (r *Run) Cancel(ctx context.Context) error {
	for {
		execution := r.latest()
		if err := r.client.CancelWorkflow(ctx, r.ID, execution); err != nil || execution == "" {
			return r.requestError(err)
		}
		// Unlike other requests, this request succeeds if the execution has ended, so describe
		// looks for the next execution.
		if _, err := r.describe(ctx); err != nil || r.latest() == execution {
			return r.requestError(err)
		}
	}
}

// Terminate ends the run without a result. Its host workers stop its processes, at once or when
// they are back. Prefer [Run.Cancel].
func (r *Run) Terminate(ctx context.Context, reason string) error {
	return r.requestError(r.request(ctx, func(execution string) error {
		return r.client.TerminateWorkflow(ctx, r.ID, execution, reason)
	}))
}

// TerminateTask stops tasks. Their exits do not count as failures.
func (r *Run) TerminateTask(ctx context.Context, q spec.TaskRequest) (spec.RequestAnswer, error) {
	return ask[spec.RequestAnswer](ctx, r, spec.UpdateTerminateTask, q)
}

// TerminateAll stops every task, by default with SIGKILL.
func (r *Run) TerminateAll(ctx context.Context, q spec.TerminateAllRequest) (spec.RequestAnswer, error) {
	return ask[spec.RequestAnswer](ctx, r, spec.UpdateTerminateAll, q)
}

// StartTask starts a task of the spec that has ended, or a task that is not in the spec. It
// first checks whether the host can execute it.
func (r *Run) StartTask(ctx context.Context, q spec.StartTaskRequest) (spec.RequestAnswer, error) {
	return ask[spec.RequestAnswer](ctx, r, spec.UpdateStartTask, q)
}

// RestartTask stops tasks and starts them again.
func (r *Run) RestartTask(ctx context.Context, q spec.TaskRequest) (spec.RequestAnswer, error) {
	return ask[spec.RequestAnswer](ctx, r, spec.UpdateRestartTask, q)
}

// SignalTask sends a signal to the process groups of tasks.
func (r *Run) SignalTask(ctx context.Context, q spec.SignalRequest) (spec.RequestAnswer, error) {
	return ask[spec.RequestAnswer](ctx, r, spec.UpdateSignalTask, q)
}

// RequestStop asks the run to stop and end.
func (r *Run) RequestStop(ctx context.Context, q spec.StopRequest) (spec.RequestAnswer, error) {
	return ask[spec.RequestAnswer](ctx, r, spec.UpdateRequestStop, q)
}

// StopTogether asks all tasks to stop by themselves; the run then has the grace of its spec to
// end. It returns the state of the stop. If a stop was requested before, that is the state of
// the first.
func (r *Run) StopTogether(ctx context.Context, q spec.TogetherRequest) (spec.Stopping, error) {
	return ask[spec.Stopping](ctx, r, spec.UpdateStopTogether, q)
}

// ClearStop withdraws such a stop, so that the run continues.
func (r *Run) ClearStop(ctx context.Context) (spec.Stopping, error) {
	return ask[spec.Stopping](ctx, r, spec.UpdateClearStop, spec.ClearStopRequest{})
}

// Notice gives the tasks notice that they will be stopped, and returns the state of the stop,
// with the notice in force.
func (r *Run) Notice(ctx context.Context, q spec.NoticeRequest) (spec.Stopping, error) {
	return ask[spec.Stopping](ctx, r, spec.UpdateNotice, q)
}

// CaptureStacks captures the stacks of the processes of tasks. The answer has the paths of the
// files, each on the host of its task.
func (r *Run) CaptureStacks(ctx context.Context, q spec.StacksRequest) (spec.RequestAnswer, error) {
	return ask[spec.RequestAnswer](ctx, r, spec.UpdateCaptureStacks, q)
}

// Exec allows a command to be executed with a task. The answer has the way to its host.
func (r *Run) Exec(ctx context.Context, q spec.ExecRequest) (spec.RequestAnswer, error) {
	return ask[spec.RequestAnswer](ctx, r, spec.UpdateExec, q)
}

// ask sends a request and waits for its answer.
func ask[A any](ctx context.Context, r *Run, name string, arg any) (A, error) {
	var answer A
	err := r.request(ctx, func(execution string) error {
		handle, err := r.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID:   r.ID,
			RunID:        execution,
			UpdateName:   name,
			Args:         []any{arg},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err != nil {
			return err
		}
		return handle.Get(ctx, &answer)
	})
	if err != nil {
		var none A
		return none, r.requestError(err)
	}
	return answer, nil
}

// requestError explains why a request was not delivered. It returns the run's own answers
// unchanged.
func (c *chain) requestError(err error) error {
	var (
		application *temporal.ApplicationError
		slow        *client.WorkflowUpdateServiceTimeoutOrCanceledError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &application):
		refused := &RefusedError{Reason: application.Message(), Invalid: application.Type() == spec.ErrInvalidRequest}
		if application.HasDetails() {
			_ = application.Details(&refused.Tasks) // another version may send other details
		}
		return refused
	case isNotFound(err):
		if c.exists() {
			return &EndedError{RunID: c.id}
		}
		return &NotFoundError{RunID: c.id}
	case errors.As(err, &slow), errors.Is(err, context.DeadlineExceeded):
		return &UnansweredError{RunID: c.id, Cause: err}
	default:
		return fmt.Errorf("run %s: %w", c.id, err)
	}
}

// exists distinguishes an ended run from one that never existed. The server returns the same
// error for both.
func (c *chain) exists() bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	_, err := c.describe(ctx)
	return err == nil
}
