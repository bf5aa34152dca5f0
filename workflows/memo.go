package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// noteFacts writes the facts that lists show of a run into its memo, unless its starter has. Only
// clusterrun and its Go package do: other SDKs and the temporal CLI know nothing of them.
func noteFacts(ctx workflow.Context, s *spec.RunSpec) {
	info := workflow.GetInfo(ctx)
	if info.Memo.GetFields()[runs.MemoTasks] != nil || info.ContinuedExecutionRunID != "" ||
		workflow.GetVersion(ctx, "memo", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	owner := ""
	if parent := info.ParentWorkflowExecution; parent != nil {
		owner = runs.OwnerOf(parent.ID)
	}
	if err := workflow.UpsertMemo(ctx, runs.Memo(s, owner)); err != nil {
		workflow.GetLogger(ctx).Warn("the memo of the run, which lists show, could not be written", "error", err)
	}
}
