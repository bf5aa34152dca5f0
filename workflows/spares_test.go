package workflows_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A lost host is replaced by the run's spare at its place, so that the other keeps its rank. The
// fleet learns how the run has ended on its hosts.
func TestASpareReplacesALostHost(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.TaskQueue})
	env.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
	var mu sync.Mutex
	machine := fleet.New()
	for _, name := range []string{"a", "b", "c"} {
		machine.Step(fleet.Joined{Host: fleet.Host{Name: name, Instance: "i", Slots: 1}, Now: env.Now()})
	}
	env.OnSignalExternalWorkflow(mock.Anything, spec.FleetID(spec.TaskQueue), mock.Anything, spec.SignalFleet, mock.Anything).Return(
		func(_, _, _, _ string, arg any) error {
			mu.Lock()
			defer mu.Unlock()
			m := arg.(fleet.Message)
			var e fleet.Event
			switch now := env.Now(); {
			case m.Asked != nil:
				m.Asked.Now = now
				e = *m.Asked
			case m.Placed != nil:
				m.Placed.Now = now
				e = *m.Placed
			case m.Freed != nil:
				m.Freed.Now = now
				e = *m.Freed
			}
			for _, a := range machine.Step(e) {
				if g, ok := a.(fleet.Grant); ok {
					env.RegisterDelayedCallback(func() { env.SignalWorkflow(spec.SignalFleet, fleet.Answer{Grant: &g}) }, 0)
				}
			}
			return nil
		})
	hostOf := func(ctx context.Context) string {
		_, rest, _ := strings.Cut(activity.GetInfo(ctx).TaskQueue, "/host/")
		host, _, _ := strings.Cut(rest, "/")
		return host
	}
	placed := make([]map[string]string, 2) // hosts by task, of each generation
	register := func(name string, f any) { env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name}) }
	register(hostapi.Name(hostapi.Host.Reserve), func(ctx context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
		mu.Lock()
		defer mu.Unlock()
		if placed[in.Generation] == nil {
			placed[in.Generation] = map[string]string{}
		}
		for _, task := range in.Tasks {
			placed[in.Generation][task] = hostOf(ctx)
		}
		return hostapi.ReserveOutput{Host: hostOf(ctx), Instance: "i", Addresses: []string{hostOf(ctx) + ":1"}}, nil
	})
	register(hostapi.Name(hostapi.Host.Prepare), func(context.Context, hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
		return hostapi.PrepareOutput{}, nil
	})
	register(hostapi.Name(hostapi.Host.Unreserve), func(context.Context, spec.Group) (hostapi.None, error) { return hostapi.None{}, nil })
	register(hostapi.Name(hostapi.Host.Release), func(context.Context, hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
		return hostapi.ReleaseOutput{}, nil
	})
	register(hostapi.Name(hostapi.Host.RunTask), func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
		if in.Generation > 0 {
			return spec.Exit{Cause: spec.CauseCompleted}, nil
		}
		if hostOf(ctx) == "b" {
			<-ctx.Done()
			return spec.Exit{}, temporal.NewCanceledError(spec.Exit{Cause: spec.CauseCollateral, Signal: "SIGTERM"})
		}
		mu.Lock()
		machine.Step(fleet.Silent{Name: hostOf(ctx), Instance: "i", Now: env.Now()})
		mu.Unlock()
		exit := spec.Exit{Cause: spec.CauseHostLost, ExitCode: -1}
		return spec.Exit{}, temporal.NewNonRetryableApplicationError("ended", spec.ErrUnexpectedExit, nil, exit)
	})
	execute(t, env, spec.RunSpec{
		Command: []string{"x"}, RestartScope: spec.RestartScopeGroup, Hosts: spec.Hosts{Count: "2", Spares: new(1)},
		Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}},
	})
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, []map[string]string{{"worker-0": "a", "worker-1": "b"}, {"worker-0": "c", "worker-1": "b"}}, placed)
	for host, want := range map[string]string{"a": "host-lost", "b": fleet.EndCompleted, "c": fleet.EndCompleted} {
		days := machine.History(host)
		require.Len(t, days, 1, host)
		assert.Equal(t, []fleet.Ends{{Kind: want, Runs: 1}}, days[0].Ends, host)
	}
}
