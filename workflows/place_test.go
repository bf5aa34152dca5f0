package workflows_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A host that refuses the spec does so for good: the run used to wait for the others
// all the same.
func TestARefusalWaitsForNoOtherHost(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.PrivateQueue("test")})
	env.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
	env.RegisterActivityWithOptions(func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
		if in.Tasks[0] == "worker-1" {
			return hostapi.ReserveOutput{}, temporal.NewNonRetryableApplicationError("one port for two tasks", spec.ErrInvalidRunSpec, nil)
		}
		return hostapi.ReserveOutput{}, temporal.NewApplicationError("no slots", spec.ErrPlacement)
	}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Reserve)})
	begun := env.Now()
	execute(t, env, spec.RunSpec{
		Command: []string{"x"}, PlacementTimeout: spec.DurationOf(time.Hour),
		Tasks: []spec.TaskGroup{{Type: "worker", Addresses: []string{"a:1", "b:1"}}},
	})
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	assert.Equal(t, spec.ErrInvalidRunSpec, app.Type())
	assert.Equal(t, "one port for two tasks", app.Message())
	assert.Less(t, env.Now().Sub(begun), time.Minute)
}

// A host that took its tasks and then does not answer is there: nobody has to start it.
func TestAHostThatDoesNotTakeTheCluster(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.PrivateQueue("test")})
	env.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
	register := func(name string, f any) { env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name}) }
	register(hostapi.Name(hostapi.Host.Reserve), func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
		host := map[string]string{"worker-0": "a", "worker-1": "b"}[in.Tasks[0]]
		return hostapi.ReserveOutput{Host: host, Instance: "i", Addresses: []string{host + ":1"}}, nil
	})
	register(hostapi.Name(hostapi.Host.Prepare), func(context.Context, hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
		return hostapi.PrepareOutput{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	})
	register(hostapi.Name(hostapi.Host.Release), func(context.Context) (hostapi.ReleaseOutput, error) { return hostapi.ReleaseOutput{}, nil })
	execute(t, env, spec.RunSpec{Command: []string{"x"}, Tasks: []spec.TaskGroup{{Type: "worker", Addresses: []string{"a:1", "b:1"}}}})
	require.ErrorContains(t, env.GetWorkflowError(), "worker-0 could not be placed on host a: its host worker did not answer in time")
}

// A run with hosts of its own has them for good.
func TestAnElasticRunWantsAFleet(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.PrivateQueue("test")})
	env.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
	execute(t, env, spec.RunSpec{
		Command: []string{"x"}, Hosts: spec.Hosts{Count: "1:2"}, RestartScope: spec.RestartScopeGroup,
		Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}},
	})
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	assert.Equal(t, spec.ErrInvalidRunSpec, app.Type())
	assert.Contains(t, app.Message(), "hosts.count is 1:2, but an elastic run needs a queue of hosts")
}

// execute runs a spec to its end.
func execute(t *testing.T, env *testsuite.TestWorkflowEnvironment, s spec.RunSpec) {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	payload, err := converter.GetDefaultDataConverter().ToPayload(json.RawMessage(data))
	require.NoError(t, err)
	env.ExecuteWorkflow(spec.WorkflowType, converter.NewRawValue(payload), (*workflows.Resumption)(nil))
	require.True(t, env.IsWorkflowCompleted())
}

// recordedSize replays a history that recorded a given size of the spec.
type recordedSize struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	size int
}

func (r *recordedSize) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	r.WorkflowInboundInterceptorBase.Next = next
	return r
}

func (r *recordedSize) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	r.WorkflowOutboundInterceptorBase.Next = outbound
	return r.WorkflowInboundInterceptorBase.Init(r)
}

func (r *recordedSize) SideEffect(ctx workflow.Context, _ func(workflow.Context) any) converter.EncodedValue {
	return r.WorkflowOutboundInterceptorBase.SideEffect(ctx, func(workflow.Context) any { return r.size })
}

// The history decides whether a run is too large for its hosts: another version of this program
// may write the same spec in more bytes.
func TestTheSizeOfASpecIsRecorded(t *testing.T) {
	place := func(size int) string {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.SetTestTimeout(time.Minute)
		env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.PrivateQueue("test")})
		env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&recordedSize{size: size}}})
		env.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
		env.RegisterActivityWithOptions(func(context.Context, hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
			return hostapi.ReserveOutput{}, temporal.NewNonRetryableApplicationError("asked", spec.ErrInvalidRunSpec, nil)
		}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Reserve)})
		execute(t, env, spec.RunSpec{
			Command: []string{"x"}, Tasks: []spec.TaskGroup{{Type: "worker", Addresses: []string{"a:1", "b:1"}}},
		})
		if err := env.GetWorkflowError(); err != nil {
			return err.Error()
		}
		var r spec.RunResult
		require.NoError(t, env.GetWorkflowResult(&r))
		return r.Message
	}
	assert.Contains(t, place(1000), "asked")
	assert.Contains(t, place(12<<20), "too large for 2 hosts: its description is 12288 KiB")
}
