package workflows

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// Reports used to have "activity error (type: Release, scheduledEventID: …)" in them.
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
