package workflows

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
)

// A worker that lacks the key fails runs that begin, and leaves continued runs to the workers
// that have it.
func TestAWorkerWithoutTheKey(t *testing.T) {
	encoded := converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{"encoding": []byte("binary/encrypted"), "encryption-key-id": []byte("2026-11")}, Data: []byte("x"),
	})
	run := func(continued string) error {
		var suite testsuite.WorkflowTestSuite
		w := suite.NewTestWorkflowEnvironment()
		w.RegisterWorkflow(ClusterRun)
		w.SetContinuedExecutionRunID(continued)
		w.ExecuteWorkflow(ClusterRun, encoded, encoded)
		return w.GetWorkflowError()
	}
	var panicked *temporal.PanicError
	err := run("")
	require.ErrorContains(t, err, "2026-11")
	assert.NotErrorAs(t, err, &panicked)
	err = run("0123")
	require.ErrorAs(t, err, &panicked, "its workflow task is tried again elsewhere")
	assert.ErrorContains(t, err, "2026-11")
}
