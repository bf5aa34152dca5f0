package workflows_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
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

// The host of worker-1 does not take its task. It is given up once another host has promised, and
// has said nothing else for long; and without a promise only after the long bound. Without two
// bounds it is not offered again.
func TestASilentHostIsGivenUpWithAPromise(t *testing.T) {
	const open = 26 * time.Second // an offer
	for _, c := range []struct {
		name    string
		reaches bool
		quiet   time.Duration
		refuses bool
		taken   int // the offer that the host takes
		offers  int
		ok      bool
	}{
		{"the other host was quiet", true, time.Hour, false, 0, 1, false},
		{"it spoke a moment ago", true, time.Second, false, 0, 2, false},
		{"it spoke a moment ago, and the host is back", true, time.Second, false, 2, 2, true},
		{"it does not promise", true, 0, true, 0, 24, false},
		{"it does not promise, and the host is back", true, 0, true, 20, 20, true},
		{"the hosts do not reach each other", false, time.Hour, false, 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			env.SetTestTimeout(time.Minute)
			env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.PrivateQueue("test")})
			env.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
			register := func(name string, f any) { env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name}) }
			register(hostapi.Name(hostapi.Host.Reserve), func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
				host := map[string]string{"worker-0": "a", "worker-1": "b"}[in.Tasks[0]]
				return hostapi.ReserveOutput{Host: host, Instance: "i", Addresses: []string{host + ":1"}, Witness: &spec.HostService{Host: host}}, nil
			})
			register(hostapi.Name(hostapi.Host.Prepare), func(_ context.Context, in hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
				assert.Len(t, in.Witnesses, 2)
				return hostapi.PrepareOutput{Reaches: c.reaches}, nil
			})
			register(hostapi.Name(hostapi.Host.RunTask), func(context.Context, hostapi.RunTaskInput) (spec.Exit, error) { panic("mocked") })
			denied := 0
			register(hostapi.Name(hostapi.Host.Deny), func(ctx context.Context, in hostapi.DenyInput) (hostapi.DenyOutput, error) {
				assert.Equal(t, []string{"worker-1"}, in.Tasks)
				assert.Contains(t, activity.GetInfo(ctx).TaskQueue, "/host/a/i")
				denied++
				if c.refuses {
					return hostapi.DenyOutput{}, errors.New("it is away")
				}
				return hostapi.DenyOutput{Quiet: c.quiet}, nil
			})
			register(hostapi.Name(hostapi.Host.Release), func(context.Context) (hostapi.ReleaseOutput, error) { return hostapi.ReleaseOutput{}, nil })
			var mu sync.Mutex
			var offers []hostapi.RunTaskInput
			env.OnActivity(hostapi.Name(hostapi.Host.RunTask), mock.Anything, mock.Anything).After(open).Return(
				func(_ context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
					assert.Equal(t, c.reaches, in.Bounds != nil)
					mu.Lock()
					defer mu.Unlock()
					if in.Task == "worker-1" {
						offers = append(offers, in)
						if len(offers) != c.taken {
							return spec.Exit{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
						}
					}
					return spec.Exit{Cause: spec.CauseCompleted}, nil
				})
			env.ExecuteWorkflow(spec.WorkflowType, map[string]any{
				"command": []string{"x"}, "tasks": []map[string]any{{"type": "worker", "addresses": []string{"a", "b"}}},
			}, nil)
			require.True(t, env.IsWorkflowCompleted())
			err := env.GetWorkflowError()
			if c.ok {
				require.NoError(t, err)
			} else {
				var app *temporal.ApplicationError
				require.ErrorAs(t, err, &app)
				assert.Equal(t, spec.ErrHostLost, app.Type())
			}
			assert.Len(t, offers, c.offers)
			for i := range offers[1:] {
				assert.Greater(t, offers[i+1].Offer, offers[i].Offer)
			}
			if c.reaches {
				assert.GreaterOrEqual(t, denied, c.offers-1)
			} else {
				assert.Zero(t, denied)
			}
		})
	}
}
