package workflows

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// Reports used to contain "activity error (type: Release, scheduledEventID: …)".
func TestReasonsHaveNoInternals(t *testing.T) {
	for want, fails := range map[string]error{
		"host-a has no room":                     temporal.NewNonRetryableApplicationError("host-a has no room", "PlacementError", errors.New("inner")),
		"its host worker did not answer in time": temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil),
		"a panic":                                errors.New("a panic"),
	} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.RegisterActivity(fail)
		env.OnActivity(fail).Return(fails)
		env.ExecuteWorkflow(func(ctx workflow.Context) (string, error) {
			o := workflow.ActivityOptions{StartToCloseTimeout: tenYears, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}}
			return reasonOf(workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), fail).Get(ctx, nil)), nil
		})
		var got string
		assert.NoError(t, env.GetWorkflowResult(&got))
		assert.Equal(t, want, got)
	}
}

func fail() error { return nil }

// A worker without the key fails new runs, and leaves continued runs to the workers that have it.
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
