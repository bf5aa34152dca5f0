package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// localTries runs a task on a local queue. Its host answers the tries of a reservation with
// answer. It reports for each try of Reserve and Release whether it was part of a workflow
// task.
func localTries(t *testing.T, answer func(try int) error) (tries map[string][]bool, env *testsuite.TestWorkflowEnvironment) {
	var suite testsuite.WorkflowTestSuite
	env = suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.LocalQueue("test")})
	env.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
	tries = map[string][]bool{}
	note := func(ctx context.Context, name string) int {
		tries[name] = append(tries[name], activity.GetInfo(ctx).IsLocalActivity)
		return len(tries[name])
	}
	register := func(name string, f any) {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	register(hostapi.Name(hostapi.Host.Reserve), func(ctx context.Context, _ hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
		try := note(ctx, hostapi.Name(hostapi.Host.Reserve))
		return hostapi.ReserveOutput{Host: "a", Instance: "abcdefgh", Addresses: []string{"127.0.0.1:1"}}, answer(try)
	})
	register(hostapi.Name(hostapi.Host.RunTask), func(context.Context, hostapi.RunTaskInput) (spec.Exit, error) {
		return spec.Exit{Cause: spec.CauseCompleted}, nil
	})
	register(hostapi.Name(hostapi.Host.Release), func(ctx context.Context, _ hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
		note(ctx, hostapi.Name(hostapi.Host.Release))
		return hostapi.ReleaseOutput{}, nil
	})
	execute(t, env, spec.RunSpec{Command: []string{"x"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(1)}}})
	return tries, env
}

func TestALocalReservationIsPartOfTheWorkflowTask(t *testing.T) {
	tries, env := localTries(t, func(int) error { return nil })
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, map[string][]bool{hostapi.Name(hostapi.Host.Reserve): {true}, hostapi.Name(hostapi.Host.Release): {true}}, tries)
}

// A workflow task does not wait until a resource becomes free, since the requests of users
// would wait for it.
func TestALocalReservationThatFailsIsRetriedByTheServer(t *testing.T) {
	tries, env := localTries(t, func(try int) error {
		if try < 3 {
			return temporal.NewApplicationError("the port is taken", spec.ErrPlacement)
		}
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, []bool{true, false, false}, tries[hostapi.Name(hostapi.Host.Reserve)])
}

func TestALocalRefusalIsForGood(t *testing.T) {
	tries, env := localTries(t, func(int) error {
		return temporal.NewNonRetryableApplicationError("no such program", spec.ErrInvalidRunSpec, nil)
	})
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	assert.Equal(t, spec.ErrInvalidRunSpec, app.Type())
	assert.Equal(t, []bool{true}, tries[hostapi.Name(hostapi.Host.Reserve)])
}
