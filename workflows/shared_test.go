package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// The spec and the cluster of a run with many hosts are not in the input of each host.
func TestManyHostsShareWhatTheyReceive(t *testing.T) {
	for _, c := range []struct {
		hosts, environment int
		shared             int
	}{
		{3, 100, 0},
		{3, 500_000, 2},
		{80, 100, 2},
	} {
		t.Run(fmt.Sprint(c.hosts, " hosts, ", c.environment, " bytes"), func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			env.SetTestTimeout(time.Minute)
			env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.PrivateQueue("test")})
			env.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
			values := map[string]converter.EncodedValues{}
			env.RegisterWorkflowWithOptions(workflows.Shared, workflow.RegisterOptions{Name: spec.SharedWorkflowType})
			env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
				values[info.WorkflowExecution.ID] = args
			})
			read := func(at *hostapi.Shared, value any) {
				if at != nil {
					require.NotEmpty(t, at.RunID)
					require.NoError(t, values[at.WorkflowID].Get(value))
				}
			}
			env.RegisterActivityWithOptions(func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
				assert.Equal(t, c.shared == 0, in.SharedSpec == nil)
				assert.Equal(t, c.shared == 0, in.Spec != nil)
				var shared hostapi.ReserveInput
				if read(in.SharedSpec, &shared); shared.Spec != nil {
					in.Spec = shared.Spec
				}
				assert.Len(t, in.Spec.TaskList(), c.hosts)
				host := strings.TrimPrefix(in.Tasks[0], "worker-")
				return hostapi.ReserveOutput{Host: host, Instance: "1", Addresses: []string{host + ":1"}}, nil
			}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Reserve)})
			env.RegisterActivityWithOptions(func(_ context.Context, in hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
				assert.Equal(t, c.shared == 0, in.SharedCluster == nil)
				read(in.SharedCluster, &in.Cluster)
				assert.Len(t, in.Cluster.Members, c.hosts)
				return hostapi.PrepareOutput{}, nil
			}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Prepare)})
			env.RegisterActivityWithOptions(func(context.Context, hostapi.RunTaskInput) (spec.Exit, error) {
				return spec.Exit{Cause: spec.CauseCompleted}, nil
			}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.RunTask)})
			env.RegisterActivityWithOptions(func(context.Context, hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
				return hostapi.ReleaseOutput{}, nil
			}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Release)})
			group := spec.TaskGroup{Type: "worker"}
			for i := range c.hosts {
				group.Addresses = append(group.Addresses, fmt.Sprintf("h%d:1", i))
			}
			environment := map[string]string{}
			for i := range 10 {
				environment[fmt.Sprint("X", i)] = strings.Repeat("x", c.environment/10)
			}
			execute(t, env, spec.RunSpec{Command: []string{"x"}, Tasks: []spec.TaskGroup{group}, Env: spec.EnvOf(environment)})
			require.NoError(t, env.GetWorkflowError())
			assert.Len(t, values, c.shared)
		})
	}
}
