package workflows_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Histories of released versions must replay: a run may live for months and meet several
// versions of this code. `make record` records the histories of a new version.
func TestReplay(t *testing.T) {
	types := map[string]any{
		spec.WorkflowType:        workflows.ClusterRun,
		spec.GroupWorkflowType:   workflows.TaskGroup,
		spec.FleetWorkflowType:   workflows.Fleet,
		spec.BarrierWorkflowType: workflows.Barrier,
		spec.NotifyWorkflowType:  workflows.Notify,
		spec.SweepWorkflowType:   workflows.Sweep,
		spec.TrialWorkflowType:   workflows.ClusterRun,
		closure.QueueType:        queue.Workflow,
	}
	files, err := filepath.Glob("testdata/replay/*/*.json")
	require.NoError(t, err)
	replayed := map[string]bool{}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			f, err := os.Open(file)
			require.NoError(t, err)
			defer f.Close()
			history, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
			require.NoError(t, err)
			begun := history.Events[0].GetWorkflowExecutionStartedEventAttributes()
			name := begun.GetWorkflowType().GetName()
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions(types[name], workflow.RegisterOptions{Name: name})
			require.NoError(t, r.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{
				// A run accepts answers of its fleet only if they are for this execution.
				OriginalExecution: workflow.Execution{ID: begun.GetWorkflowId(), RunID: begun.GetOriginalExecutionRunId()},
			}))
			replayed[name] = true
		})
	}
	for name := range types {
		require.True(t, replayed[name], "there is no history of the workflow type %s", name)
	}
}
