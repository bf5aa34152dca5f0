package workflows_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// If an activity was closed without a report of its process, the host is asked to settle before
// the next generation is placed, in this execution or the next.
func TestNothingIsPlacedBeforeTheLastGenerationIsSettled(t *testing.T) {
	for _, c := range []struct {
		name     string
		accounts bool // the host reports the end of the process of generation 0
		long     bool // the history is, so that the run continues as new
		want     []string
	}{
		{"no account", false, false, []string{"reserve 0", "run 0", "settle 0", "reserve 1", "run 1", "release"}},
		{"no account, continues as new", false, true, []string{"reserve 0", "run 0", "settle 0", "reserve 1", "run 1", "release"}},
		{"an account", true, false, []string{"reserve 0", "run 0", "reserve 1", "run 1", "release"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var order []string
			note := func(what string, generation int) { order = append(order, fmt.Sprintf("%s %d", what, generation)) }
			run := func(long bool, from *workflows.Resumption) error {
				w := newWorld(t)
				w.SetContinueAsNewSuggested(long)
				w.RegisterActivityWithOptions(func(_ context.Context, in hostapi.TasksInput) (spec.RequestAnswer, error) {
					assert.Equal(t, []string{"worker-0"}, in.Tasks)
					note("settle", in.Generation)
					return spec.RequestAnswer{}, nil
				}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.SettleTasks)})
				w.OnActivity(hostapi.Name(hostapi.Host.Reserve), mock.Anything, mock.Anything).Return(func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
					note("reserve", in.Generation)
					return hostapi.ReserveOutput{Host: "a", Instance: "i", Addresses: []string{"127.0.0.1:1"}}, nil
				})
				w.OnActivity(hostapi.Name(hostapi.Host.RunTask), mock.Anything, mock.Anything).Return(func(_ context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
					note("run", in.Generation)
					switch {
					case in.Generation > 0:
						return spec.Exit{Cause: spec.CauseCompleted}, nil
					case c.accounts:
						return spec.Exit{}, temporal.NewNonRetryableApplicationError("failed", spec.ErrUnexpectedExit, nil,
							spec.Exit{ExitCode: 3, Cause: spec.CauseOrigin})
					}
					return spec.Exit{}, temporal.NewNonRetryableApplicationError("nobody knows", "x", nil)
				})
				w.onRelease = func(int) { order = append(order, "release") }
				return w.start(t, groupSpec, from)
			}
			err := run(c.long, nil)
			if c.long {
				err = run(false, next(t, err))
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, order)
		})
	}
}
