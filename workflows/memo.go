package workflows

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// noteFacts records the facts by which lists show and find a run, unless the run's starter has
// recorded them. Only clusterrun and its Go packages do that, not other SDKs or the temporal CLI.
func noteFacts(ctx workflow.Context, s *spec.RunSpec) {
	info := workflow.GetInfo(ctx)
	if info.ContinuedExecutionRunID != "" {
		return
	}
	owner := ""
	if parent := info.ParentWorkflowExecution; parent != nil {
		owner = runs.OwnerOf(parent.ID)
	}
	if memo := info.Memo.GetFields(); memo[runs.MemoTasks] != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(memo[runs.MemoOwner], &owner) // it may be encrypted
	} else if err := workflow.UpsertMemo(ctx, runs.Memo(s, owner)); err != nil {
		workflow.GetLogger(ctx).Warn("the run's memo, which lists show, could not be written", "error", err)
	}
	noteAttributes(ctx, s, owner)
}
