package workflows_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// world is a host without processes, under a workflow whose history has always
// become long.
type world struct {
	*testsuite.TestWorkflowEnvironment
	// generations are those that were reserved, and releases counts Release.
	generations []int
	releases    int
	// hosts have the task, by generation.
	hosts []string
	mu    sync.Mutex // for releases: a run of several hosts has them at the same time
	// onRelease is called within each Release.
	onRelease func(n int)
}

func newWorld(t *testing.T) *world {
	var suite testsuite.WorkflowTestSuite
	w := &world{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), hosts: []string{"a"}, onRelease: func(int) {}}
	w.SetTestTimeout(time.Minute)
	w.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.PrivateQueue("test")})
	w.RegisterWorkflowWithOptions(clusterRun(t), workflow.RegisterOptions{Name: spec.WorkflowType})
	w.RegisterWorkflowWithOptions(workflows.TaskGroup, workflow.RegisterOptions{Name: spec.GroupWorkflowType})
	w.RegisterWorkflowWithOptions(workflows.Notify, workflow.RegisterOptions{Name: spec.NotifyWorkflowType})
	hearEnds(w.TestWorkflowEnvironment)
	w.SetContinueAsNewSuggested(true)
	register := func(name string, f any) {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	register(hostapi.Name(hostapi.Host.Reserve), func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
		w.generations = append(w.generations, in.Generation)
		host := w.hosts[min(in.Generation, len(w.hosts)-1)]
		return hostapi.ReserveOutput{Host: host, Instance: "i", Addresses: []string{"127.0.0.1:1"}}, nil
	})
	register(hostapi.Name(hostapi.Host.RunTask), func(_ context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
		exit := spec.Exit{Restart: in.Generation, ExitCode: 3, Cause: spec.CauseOrigin}
		return spec.Exit{}, temporal.NewNonRetryableApplicationError("failed", spec.ErrUnexpectedExit, nil, exit)
	})
	register(hostapi.Name(hostapi.Host.Release), func(context.Context) (hostapi.ReleaseOutput, error) {
		w.mu.Lock()
		w.releases++
		n := w.releases
		w.mu.Unlock()
		w.onRelease(n)
		return hostapi.ReleaseOutput{Output: []string{"a line"}}, nil
	})
	return w
}

func (w *world) start(t *testing.T, s spec.RunSpec, from *workflows.Resumption) error {
	s.Command, s.Tasks = []string{"x"}, []spec.TaskGroup{{Type: "worker"}}
	data, err := json.Marshal(s)
	require.NoError(t, err)
	payload, err := converter.GetDefaultDataConverter().ToPayload(json.RawMessage(data))
	require.NoError(t, err)
	w.ExecuteWorkflow(spec.WorkflowType, converter.NewRawValue(payload), from)
	require.True(t, w.IsWorkflowCompleted())
	return w.GetWorkflowError()
}

// next returns the resumption of a run that continued as new.
func next(t *testing.T, err error) *workflows.Resumption {
	t.Helper()
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &again)
	var raw converter.RawValue
	var r workflows.Resumption
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &raw, &r))
	return &r
}

var groupSpec = spec.RunSpec{RestartScope: spec.RestartScopeGroup, ReturnOutput: true}

// A limit holds that passes while a continued run is being placed.
func TestTimeoutWhileARunThatGoesOnIsPlaced(t *testing.T) {
	w := newWorld(t)
	r := next(t, w.start(t, groupSpec, nil))
	w = newWorld(t)
	s := groupSpec
	s.Timeout = spec.DurationOf(time.Minute)
	r.Started = w.Now().Add(-time.Hour)
	err := w.start(t, s, r)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, spec.ErrSubprocessTimeout, failed.Type(), failed.Message())
}
