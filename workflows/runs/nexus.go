package runs

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The Nexus service that host workers offer on their queue, and its operations. Both return a
// [spec.RunResult]; a run that did not succeed fails the operation as it fails a parent.
const (
	Service = "clusterrun"
	// OperationRun executes a run. Its input is a [RunInput]. A cancellation of the operation
	// stops the run.
	OperationRun = "run"
	// OperationWait waits for the end of a run that exists. Its input is a [WaitInput]. A
	// cancellation of the operation does not reach the run.
	OperationWait = "wait"
)

// RunInput is the input of [OperationRun].
type RunInput struct {
	// Spec is the run spec.
	Spec *spec.RunSpec `json:"spec"`
	// ID is the run ID. Default: the spec's name and a part that is the same for each attempt
	// of the operation.
	ID string `json:"id,omitempty"`
	// Attach reports whether the operation waits for the open run with the ID, if there is one.
	// Otherwise it fails then.
	Attach bool `json:"attach,omitempty"`
	// Owner is shown in lists of runs. Default: the ID of the caller's workflow.
	Owner string `json:"owner,omitempty"`
}

// WaitInput is the input of [OperationWait].
type WaitInput struct {
	// ID is the run ID.
	ID string `json:"id"`
}

// RunNexus executes a run through a Nexus endpoint and returns its result, with the same errors as
// [Run]. If the endpoint does not answer, or a timeout of the options passes, the error is
// one of Temporal; the run may continue then.
func RunNexus(ctx workflow.Context, endpoint string, in RunInput, o workflow.NexusOperationOptions) (*spec.RunResult, error) {
	return operate(ctx, endpoint, OperationRun, in.ID, in, o)
}

// WaitNexus waits through a Nexus endpoint for the end of a run that exists, open or ended, and
// returns its result, with the same errors as [RunNexus], or a [*NotFoundError]. If ctx is
// cancelled, WaitNexus returns at once and the run continues.
func WaitNexus(ctx workflow.Context, endpoint, id string, o workflow.NexusOperationOptions) (*spec.RunResult, error) {
	o.CancellationType = cmp.Or(o.CancellationType, workflow.NexusOperationCancellationTypeTryCancel)
	return operate(ctx, endpoint, OperationWait, id, WaitInput{ID: id}, o)
}

func operate(ctx workflow.Context, endpoint, operation, id string, in any, o workflow.NexusOperationOptions) (*spec.RunResult, error) {
	var result spec.RunResult
	err := workflow.NewNexusClient(endpoint, Service).ExecuteOperation(ctx, operation, in, o).Get(ctx, &result)
	if err == nil {
		return &result, nil
	}
	if application := innermost(err); application != nil {
		switch application.Type() {
		case ErrRunning:
			return nil, &RunningError{ID: id}
		case ErrNotFound:
			return nil, &NotFoundError{RunID: id}
		}
	}
	var (
		timeout *temporal.TimeoutError
		handler *nexus.HandlerError
	)
	if resultIn(err) == nil && (errors.As(err, &timeout) || errors.As(err, &handler) || ctx.Err() != nil) {
		return nil, fmt.Errorf("operation %s of run %s: %w", operation, id, err) // it is not the end of the run
	}
	return ended(id, err)
}
