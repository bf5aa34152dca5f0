package workflows_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A task that made its peer fail is not stopped before it has reported why.
func TestALostPeerStopsNobodyAtOnce(t *testing.T) {
	captured := make(chan struct{})
	var once sync.Once
	fail := func(p spec.PrintedError) (spec.Exit, error) {
		return spec.Exit{Cause: spec.CauseOrigin, ExitCode: 1, Printed: &p}, nil
	}
	env := newEnv(t, activities{
		"RunTask": func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
			if in.Task == "worker-0" {
				return fail(spec.PrintedError{Kind: "python", Line: "RuntimeError: Connection closed by peer", LostPeer: true})
			}
			select {
			case <-captured:
				return fail(spec.PrintedError{Kind: "python", Line: "ValueError: shard 3 is corrupt"})
			case <-ctx.Done():
				return spec.Exit{Cause: spec.CauseCollateral, ExitCode: -15}, nil
			}
		},
		"CaptureStacks": func(_ context.Context, _ spec.HostRequest[spec.StacksRequest]) (spec.RequestAnswer, error) {
			once.Do(func() { close(captured) })
			return spec.RequestAnswer{}, nil
		},
	})
	execute(t, env, spec.RunSpec{Command: []string{"train"}, Tasks: workers("a:1", "b:1")}, nil)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &failed)
	var r spec.RunResult
	require.NoError(t, failed.Details(&r))
	require.NotNil(t, r.FirstFailure)
	assert.Equal(t, "worker-1", r.FirstFailure.Task)
	assert.Equal(t, "worker-0", r.FirstEnded)
}
