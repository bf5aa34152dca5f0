package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// activities implements a test's hosts, by the names in [hostapi.Host].
type activities map[string]any

// succeed implements hosts on which everything succeeds immediately.
var succeed = activities{
	"Reserve": func(ctx context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
		return reserved(hostOf(ctx), len(in.Tasks)), nil
	},
	"Prepare": func(context.Context, hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
		return hostapi.PrepareOutput{}, nil
	},
	"Deny": func(context.Context, hostapi.DenyInput) (hostapi.DenyOutput, error) {
		return hostapi.DenyOutput{Quiet: time.Hour}, nil
	},
	"Answer": func(context.Context) (hostapi.None, error) { return hostapi.None{}, nil },
	"RunTask": func(context.Context, hostapi.RunTaskInput) (spec.Exit, error) {
		return spec.Exit{Cause: spec.CauseCompleted}, nil
	},
	"TellStopping": func(context.Context) (hostapi.None, error) { return hostapi.None{}, nil },
	"SettleTasks": func(context.Context, hostapi.TasksInput) (spec.RequestAnswer, error) {
		return spec.RequestAnswer{}, nil
	},
	"Unreserve":  func(context.Context) (hostapi.None, error) { return hostapi.None{}, nil },
	"CheckStart": func(context.Context) (hostapi.None, error) { return hostapi.None{}, nil },
	"CaptureStacks": func(_ context.Context, in spec.HostRequest[spec.StacksRequest]) (spec.RequestAnswer, error) {
		return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
	},
	"Release": func(context.Context, hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
		return hostapi.ReleaseOutput{}, nil
	},
}

// newEnv returns an environment for a run with its own hosts, which use do and, for the rest,
// succeed.
func newEnv(t *testing.T, do activities) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.PrivateQueue("test")})
	env.RegisterWorkflowWithOptions(clusterRun(t), workflow.RegisterOptions{Name: spec.WorkflowType})
	env.RegisterWorkflowWithOptions(workflows.TaskGroup, workflow.RegisterOptions{Name: spec.GroupWorkflowType})
	env.RegisterWorkflowWithOptions(workflows.Shared, workflow.RegisterOptions{Name: spec.SharedWorkflowType})
	hearEnds(env)
	for _, all := range []activities{succeed, do} {
		register(env, all)
	}
	return env
}

// register replaces some of the hosts' activities.
func register(env *testsuite.TestWorkflowEnvironment, do activities) {
	for name, f := range do {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name, DisableAlreadyRegisteredCheck: true})
	}
}

// hostOf returns the host that an activity's queue belongs to, or a.
func hostOf(ctx context.Context) string {
	_, queue, on := strings.Cut(activity.GetInfo(ctx).TaskQueue, "/host/")
	if host, _, _ := strings.Cut(queue, "/"); on {
		return host
	}
	return "a"
}

// reserved is a host's answer when it accepts some tasks.
func reserved(host string, tasks int) hostapi.ReserveOutput {
	out := hostapi.ReserveOutput{Host: host, Instance: "i", Witness: &spec.HostService{Host: host}}
	for i := range tasks {
		out.Addresses = append(out.Addresses, fmt.Sprint(host, ":", i+1))
	}
	return out
}

// workers returns tasks at addresses.
func workers(addresses ...string) []spec.TaskGroup {
	return []spec.TaskGroup{{Type: "worker", Addresses: addresses}}
}

// execute runs a spec to completion.
func execute(t *testing.T, env *testsuite.TestWorkflowEnvironment, s spec.RunSpec, from *workflows.Resumption) {
	t.Helper()
	if s.Command == nil {
		s.Command = []string{"x"}
	}
	data := must.Get(json.Marshal(s))(t)
	payload := must.Get(converter.GetDefaultDataConverter().ToPayload(json.RawMessage(data)))(t)
	env.ExecuteWorkflow(spec.WorkflowType, converter.NewRawValue(payload), from)
	require.True(t, env.IsWorkflowCompleted())
}

// clusterRun returns a test's run workflow. In TestInGroups it is a workflow with tasks carried by
// groups.
func clusterRun(t *testing.T) func(workflow.Context, converter.RawValue, converter.RawValue) (*spec.RunResult, error) {
	if strings.HasPrefix(t.Name(), "TestInGroups/") {
		return workflows.ClusterRunInGroups
	}
	return workflows.ClusterRun
}

// hearEnds delivers the groups' signals to a test's runs.
func hearEnds(env *testsuite.TestWorkflowEnvironment) {
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, spec.SignalEnded, mock.Anything).
		Return(func(_, _, _, name string, ends any) error {
			env.SignalWorkflow(name, ends)
			return nil
		}).Maybe()
}
