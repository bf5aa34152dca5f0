package operations

import (
	"errors"
	"fmt"

	"github.com/nexus-rpc/sdk-go/nexus"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// Service returns the service. It uses the client of the worker with which it is registered.
func Service() *nexus.Service {
	s := nexus.NewService(runs.Service)
	s.MustRegister(
		temporalnexus.MustNewWorkflowRunOperationWithOptions(temporalnexus.WorkflowRunOperationOptions[converter.RawValue, *spec.RunResult]{
			Name: runs.OperationRun, Handler: start,
		}),
		newWait(),
	)
	return s
}

// decode decodes the input of an operation strictly. example shows a right one.
func decode(input converter.RawValue, v any, example string) error {
	p := input.Payload()
	if key := spec.MissingKey(p.GetMetadata()); key != nil {
		// Another worker may have it.
		return &nexus.HandlerError{Type: nexus.HandlerErrorTypeUnavailable, Message: key.Error(), Cause: key}
	}
	if err := strictjson.Decode(p.GetData(), v); err != nil {
		return failed(spec.ErrInvalidRequest, fmt.Sprintf("the input of the operation: %v; give %s", err, example))
	}
	return nil
}

// failed returns the error of an operation that ends without a run.
func failed(errorType, message string) error {
	return &nexus.OperationError{
		State: nexus.OperationStateFailed, Message: message,
		Cause: temporal.NewNonRetryableApplicationError(message, errorType, nil),
	}
}

// isStarted reports whether the server did not start a workflow because of another with its ID.
func isStarted(err error) bool {
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	return errors.As(err, &started)
}

// conflictPolicy returns the policy for an ID whose workflow is open.
func conflictPolicy(attach bool) enumspb.WorkflowIdConflictPolicy {
	if attach {
		return enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	}
	return enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
}
