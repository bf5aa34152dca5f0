package workflows_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// The end of a run does not wait for a host that the run has given up, and the result names
// what is missing. What ran there is lost. A host that reports a loss itself is present, and is released.
func TestTheEndWaitsForNoHostThatIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		name     string
		loss     error // of worker-1, which is on host b
		released []string
		missing  bool
	}{
		{"given up", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil), []string{"a/i"}, true},
		{"the host reports the loss", temporal.NewNonRetryableApplicationError("its record is gone", spec.ErrHostLost, nil,
			spec.Exit{ExitCode: -1, Cause: spec.CauseHostLost}), []string{"a/i", "b/i"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			env.SetTestTimeout(time.Minute)
			env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.PrivateQueue("test")})
			env.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
			register := func(name string, f any) { env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name}) }
			register(hostapi.Name(hostapi.Host.Reserve), func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
				out := hostapi.ReserveOutput{Host: "b", Instance: "i", Addresses: []string{"b:1", "b:2"}[:len(in.Tasks)]}
				if in.Tasks[0] == "worker-0" {
					out.Host, out.Addresses = "a", []string{"a:1"}
				}
				return out, nil
			})
			register(hostapi.Name(hostapi.Host.Prepare), func(context.Context, hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
				return hostapi.PrepareOutput{}, nil
			})
			register(hostapi.Name(hostapi.Host.RunTask), func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
				if in.Task == "worker-1" {
					return spec.Exit{}, c.loss
				}
				<-ctx.Done()
				if in.Task == "worker-2" {
					return spec.Exit{}, temporal.NewCanceledError() // no worker had it
				}
				return spec.Exit{}, temporal.NewCanceledError(spec.Exit{Cause: spec.CauseCollateral, Signal: "SIGTERM"})
			})
			var mu sync.Mutex
			var released []string
			register(hostapi.Name(hostapi.Host.Release), func(ctx context.Context) (hostapi.ReleaseOutput, error) {
				mu.Lock()
				defer mu.Unlock()
				released = append(released, strings.Split(activity.GetInfo(ctx).TaskQueue, "/host/")[1])
				return hostapi.ReleaseOutput{}, nil
			})
			execute(t, env, spec.RunSpec{Command: []string{"x"}, Tasks: []spec.TaskGroup{{Type: "worker", Addresses: []string{"a:1", "b:1", "b:2"}}}})
			var app *temporal.ApplicationError
			require.ErrorAs(t, env.GetWorkflowError(), &app)
			assert.Equal(t, spec.ErrHostLost, app.Type(), app.Message())
			slices.Sort(released)
			assert.Equal(t, c.released, released)
			var r spec.RunResult
			require.NoError(t, app.Details(&r))
			if c.missing {
				assert.Contains(t, strings.Join(r.NotReleased, "\n"), "host b did not come back; values and earlier exits that only it knows are missing")
				assert.Equal(t, spec.CauseHostLost, r.Tasks[2].Exit.Cause)
			} else {
				assert.Empty(t, r.NotReleased)
				assert.Nil(t, r.Tasks[2].Exit, "it started no process")
			}
		})
	}
}
