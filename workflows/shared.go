package workflows

import (
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Shared keeps its input for a run's hosts, which read it from the history, until the run cancels
// it.
func Shared(ctx workflow.Context, _ converter.RawValue) error {
	ctx.Done().Receive(ctx, nil)
	return nil
}

const (
	// maxSent limits the total size, in bytes, of the inputs that a generation sends to its hosts.
	// Above it, the hosts read the spec and the cluster from workflows of type Shared.
	maxSent = 1 << 20
	// maxShared limits a shared value, in bytes, because it must fit into one payload.
	maxShared = 1900 << 10
)

// shares reports whether the spec and the cluster are shared.
func (pl *placer) shares() bool {
	return len(pl.hosts) > 1 && (pl.inputBytes+pl.clusterSize())*len(pl.hosts) > maxSent
}

// share starts the workflow that keeps a value for the hosts, if there are many. The hosts can read
// the value until done is called.
func (pl *placer) share(ctx workflow.Context, what string, value any) (shared *hostapi.Shared, done func(), err error) {
	ctx, done = workflow.WithCancel(ctx)
	if !pl.shares() {
		return nil, done, nil
	}
	var size int
	if err := workflow.SideEffect(ctx, func(workflow.Context) any { return shorten.Size(value) }).Get(&size); err != nil || size > maxShared {
		return nil, done, temporal.NewNonRetryableApplicationError(fmt.Sprintf(
			"%s is too large: it has %d KiB, but a host can receive %d KiB; use fewer hosts or a shorter spec", what, size>>10, maxShared>>10), spec.ErrPlacement, nil)
	}
	info := workflow.GetInfo(ctx)
	pl.shared++
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:        spec.SharedValueWorkflowID(info.WorkflowExecution.ID, info.OriginalRunID, pl.shared),
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_TERMINATE,
		StaticSummary:     what + " for all hosts",
	}), spec.SharedWorkflowType, value)
	var e workflow.Execution
	if err := child.GetChildWorkflowExecution().Get(ctx, &e); err != nil {
		return nil, done, err
	}
	return &hostapi.Shared{WorkflowID: e.ID, RunID: e.RunID}, done, nil
}

// clusterSize returns the approximate size of Prepare's input, in bytes. It does not depend on
// this version's encoding, so that a replay makes the same decision.
func (pl *placer) clusterSize() int {
	const member, host = 20, 200
	return member*pl.machine.Size() + host*len(pl.hosts)
}
