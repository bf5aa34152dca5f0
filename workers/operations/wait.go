package operations

import (
	"context"
	"errors"

	"github.com/nexus-rpc/sdk-go/nexus"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// wait is the operation [runs.OperationWait].
type wait struct {
	// Operation attaches the operation to an open run.
	nexus.Operation[converter.RawValue, *spec.RunResult]
}

func newWait() wait {
	return wait{temporalnexus.MustNewWorkflowRunOperationWithOptions(temporalnexus.WorkflowRunOperationOptions[converter.RawValue, *spec.RunResult]{
		Name: runs.OperationWait, Handler: attach,
	})}
}

// Cancel ends the waiting. The run continues.
func (wait) Cancel(context.Context, string, nexus.CancelOperationOptions) error { return nil }

// Start attaches the operation to the open run with the ID, or returns the result of the last
// run with it.
func (w wait) Start(ctx context.Context, input converter.RawValue, o nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[*spec.RunResult], error) {
	id, err := waitsFor(input)
	if err != nil {
		return nil, err
	}
	c := temporalnexus.GetClient(ctx)
	for {
		d, err := c.DescribeWorkflowExecution(ctx, id, "")
		var missing *serviceerror.NotFound
		info := d.GetWorkflowExecutionInfo()
		switch {
		case errors.As(err, &missing), err == nil && !isRun(info.GetType().GetName()):
			return nil, failed(runs.ErrNotFound, (&runs.NotFoundError{RunID: id}).Error())
		case err != nil:
			return nil, err
		case info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return resultOf(ctx, c.GetWorkflow(ctx, id, info.GetExecution().GetRunId()))
		}
		result, err := w.Operation.Start(ctx, input, o)
		if !isStarted(err) {
			return result, err
		}
	}
}

// isRun reports whether a workflow is a run, a sweep or a trial of one.
func isRun(workflowType string) bool {
	return workflowType == spec.WorkflowType || workflowType == spec.SweepWorkflowType || workflowType == spec.TrialWorkflowType
}

// waitsFor returns the run ID in an input.
func waitsFor(input converter.RawValue) (string, error) {
	const example = `{"id": "RUN"}`
	var in runs.WaitInput
	if err := decode(input, &in, example); err != nil {
		return "", err
	}
	if in.ID == "" {
		return "", failed(spec.ErrInvalidRequest, "the input of the operation names no run; give "+example)
	}
	return in.ID, nil
}

// attach attaches an operation to an open run. It starts nothing: if the run has ended by now,
// the ID is refused.
func attach(ctx context.Context, input converter.RawValue, o nexus.StartOperationOptions) (temporalnexus.WorkflowHandle[*spec.RunResult], error) {
	id, err := waitsFor(input)
	if err != nil {
		return nil, err
	}
	return temporalnexus.ExecuteUntypedWorkflow[*spec.RunResult](ctx, o, client.StartWorkflowOptions{
		ID:                       id,
		WorkflowIDConflictPolicy: conflictPolicy(true),
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, spec.WorkflowType)
}

// resultOf returns the result of a run that has ended.
func resultOf(ctx context.Context, run client.WorkflowRun) (nexus.HandlerStartOperationResult[*spec.RunResult], error) {
	var (
		result    spec.RunResult
		closed    *temporal.WorkflowExecutionError
		cancelled *temporal.CanceledError
	)
	err := run.Get(ctx, &result)
	switch {
	case err == nil:
		return &nexus.HandlerStartOperationResultSync[*spec.RunResult]{Value: &result}, nil
	case !errors.As(err, &closed):
		return nil, err
	}
	cause := closed.Unwrap()
	out := &nexus.OperationError{State: nexus.OperationStateFailed, Message: cause.Error(), Cause: cause}
	if errors.As(cause, &cancelled) {
		out.State = nexus.OperationStateCanceled
	}
	return nil, out
}
