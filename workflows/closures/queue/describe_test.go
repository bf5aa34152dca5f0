package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Texts of users are shown unchanged, and never as Markdown.
func TestDetailsFenceWhatUsersSay(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	w := suite.NewTestWorkflowEnvironment()
	w.RegisterActivityWithOptions(func(closure.CheckInput) (closure.CheckOutput, error) {
		return closure.CheckOutput{}, temporal.NewApplicationError("the run is open", "RunOpen")
	}, activity.RegisterOptions{Name: closure.ActivityClosuresCheck})
	w.RegisterDelayedCallback(func() {
		w.UpdateWorkflowNoRejection(closure.UpdatePauseQueue, "", t, closure.PauseRequest{Paused: true, Reason: "<b>__full__"})
	}, time.Second)
	w.RegisterDelayedCallback(func() {
		v, err := w.QueryWorkflow("__temporal_workflow_metadata")
		require.NoError(t, err)
		var m sdkpb.WorkflowMetadata
		require.NoError(t, v.Get(&m))
		assert.Contains(t, m.GetCurrentDetails(), "· `<b>__full__` ·")
		assert.Contains(t, m.GetCurrentDetails(), "Closures of run [iris](/namespaces/default-test-namespace/workflows/iris/1-2)")
		w.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Over: "it has ended"})
	}, 2*time.Second)
	w.ExecuteWorkflow(queue.Workflow, closure.QueueInput{Run: spec.RunRef{WorkflowID: "iris", RunID: "1-2"}}, nil)
	require.NoError(t, w.GetWorkflowError())
}
