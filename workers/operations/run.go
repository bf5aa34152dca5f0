package operations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

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

// runInput is [runs.RunInput], with the spec as it came.
type runInput struct {
	Spec   json.RawMessage `json:"spec"`
	ID     string          `json:"id"`
	Attach bool            `json:"attach"`
	Owner  string          `json:"owner"`
}

// start starts the run of an operation, or attaches the operation to the open run with its ID.
func start(ctx context.Context, input converter.RawValue, o nexus.StartOperationOptions) (handle temporalnexus.WorkflowHandle[*spec.RunResult], err error) {
	var in runInput
	if err := decode(input, &in, `{"spec": {"command": ["true"], "tasks": [{"type": "worker"}]}}, and "id", "attach" and "owner" if you like`); err != nil {
		return nil, err
	}
	s, err := spec.Decode(in.Spec)
	if err != nil {
		return nil, failed(spec.ErrInvalidRunSpec, err.Error())
	}
	if err := checkID(ctx, in); err != nil {
		return nil, err
	}
	owner := cmp.Or(in.Owner, caller(o.Links))
	options := client.StartWorkflowOptions{
		ID:                       cmp.Or(in.ID, runs.IDOf(s.Name, o.RequestID)),
		WorkflowIDConflictPolicy: conflictPolicy(in.Attach),
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowTaskTimeout:      spec.WorkflowTaskTimeout,
		// No workflow timeouts: they would close the run without its Release.
		Memo:          runs.Memo(s, owner),
		StaticSummary: runs.Summary(s),
	}
	err = runs.WithAttributes(runs.Attributes(s, owner, ""), func(known temporal.SearchAttributes) (err error) {
		options.TypedSearchAttributes = known
		handle, err = temporalnexus.ExecuteUntypedWorkflow[*spec.RunResult](ctx, o, options, spec.WorkflowType, s)
		return err
	})
	if isStarted(err) {
		return nil, failed(runs.ErrRunning, (&runs.RunningError{ID: options.ID}).Error())
	}
	return handle, err
}

// checkID refuses an ID that no command takes, and the ID of a workflow that is not a run.
func checkID(ctx context.Context, in runInput) error {
	if in.ID == "" {
		return nil
	}
	if err := spec.CheckRunID(in.ID); err != nil {
		return failed(spec.ErrInvalidRequest, fmt.Sprintf("id %q %s", in.ID, err))
	}
	d, err := temporalnexus.GetClient(ctx).DescribeWorkflowExecution(ctx, in.ID, "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return nil
	case err != nil:
		return err
	case !isRun(d.GetWorkflowExecutionInfo().GetType().GetName()):
		return failed(spec.ErrInvalidRequest, fmt.Sprintf("id %q is the ID of a workflow that is no run; give another one", in.ID))
	}
	return nil
}

// caller returns the ID of the workflow that calls, or else the name of the service.
func caller(links []nexus.Link) string {
	for _, l := range links {
		if event, err := temporalnexus.ConvertNexusLinkToLinkWorkflowEvent(l); err == nil && event.GetWorkflowId() != "" {
			return runs.OwnerOf(event.GetWorkflowId())
		}
	}
	return "nexus"
}
