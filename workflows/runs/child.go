package runs

import (
	"cmp"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Options configures a run that is a child workflow.
type Options struct {
	// ID is the run ID, which is the workflow ID. It may be the ID of a finished run. By default,
	// it is the spec's name and a random part.
	ID string
	// Queue is the task queue of the host workers that execute the run. The default is
	// [spec.TaskQueue].
	Queue string
	// Owner is shown in lists of runs. The default is the parent's ID.
	Owner string
	// ParentClosePolicy selects what the server does with the run if the parent closes first. By
	// default, it requests the run's cancellation, which stops its tasks with their stop signal and
	// grace. The policy is also applied if the parent continues as new.
	ParentClosePolicy enumspb.ParentClosePolicy
}

// Child is a run that was started as a child workflow.
type Child struct {
	// ID is the run ID.
	ID string
	// ChildWorkflowFuture can be added to selectors, and reports when the run has started.
	workflow.ChildWorkflowFuture
}

// Run executes a run as a child workflow and returns its result. The error is nil only on success.
// It is an [*Error] with the result if the run finished in any other way, and a [*RunningError] if
// the ID is used by a run that is still open. An invalid spec fails the run immediately, with
// [spec.ErrInvalidRunSpec].
//
// If ctx is cancelled, the run stops its tasks as for `clusterrun stop`, and Run returns a result
// with the verdict cancelled.
func Run(ctx workflow.Context, s *spec.RunSpec, o Options) (*spec.RunResult, error) {
	return Start(ctx, s, o).Wait(ctx)
}

// Start starts a run as a child workflow, like [Run], but does not wait for its result.
func Start(ctx workflow.Context, s *spec.RunSpec, o Options) *Child {
	if o.ID == "" {
		id := workflow.SideEffect(ctx, func(workflow.Context) any { return NewID(s.Name) })
		if err := id.Get(&o.ID); err != nil {
			panic(err) // a string always converts
		}
	}
	options := workflow.ChildWorkflowOptions{
		WorkflowID:          o.ID,
		TaskQueue:           cmp.Or(o.Queue, spec.TaskQueue),
		WorkflowTaskTimeout: spec.WorkflowTaskTimeout,
		// The run's result arrives only after its tasks have exited.
		WaitForCancellation:   true,
		ParentClosePolicy:     cmp.Or(o.ParentClosePolicy, enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL),
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		// No workflow timeouts: they would close the run without its Release.
	}
	// The run itself refuses a bad spec, so changes to the rules do not change the parent's
	// commands. The facts of a bad spec may have any size.
	if s.Validate() == nil {
		owner := cmp.Or(o.Owner, OwnerOf(workflow.GetInfo(ctx).WorkflowExecution.ID))
		options.Memo, options.StaticSummary = Memo(s, owner), Summary(s)
	}
	return &Child{o.ID, workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), spec.WorkflowType, s)}
}

// Wait returns the run's result, like [Run].
func (c *Child) Wait(ctx workflow.Context) (*spec.RunResult, error) {
	var result spec.RunResult
	if err := c.Get(ctx, &result); err != nil {
		return ended(c.ID, err)
	}
	return &result, nil
}
