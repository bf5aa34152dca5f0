package workflows_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Histories of released versions must go on replaying: a run may live for
// months and meet several versions of this code. tests/e2e records them.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/replay/*/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
			r.RegisterWorkflowWithOptions(workflows.Barrier, workflow.RegisterOptions{Name: spec.BarrierWorkflowType})
			r.RegisterWorkflowWithOptions(closurequeue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
			require.NoError(t, r.ReplayWorkflowHistoryFromJSONFile(nil, file))
		})
	}
}
