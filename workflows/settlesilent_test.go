package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// silentHost answers RunTask in the first generation as the server does: worker-0 runs on one host,
// and the other host falls silent at once.
type silentHost struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	fails  time.Duration // of worker-0, or 0
	offers map[string]int
}

const (
	beats  = 15 * time.Second / 2
	passed = 15*time.Second + 300*time.Millisecond + 10*time.Second
)

func (s *silentHost) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	s.WorkflowInboundInterceptorBase.Next = next
	return s
}

func (s *silentHost) Init(out interceptor.WorkflowOutboundInterceptor) error {
	s.WorkflowOutboundInterceptorBase.Next = out
	return s.WorkflowInboundInterceptorBase.Next.Init(s)
}

func (s *silentHost) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	in, ok := args[0].(hostapi.RunTaskInput)
	if !ok || in.Generation > 0 {
		return s.WorkflowOutboundInterceptorBase.Next.ExecuteActivity(ctx, name, args...)
	}
	s.offers[in.Task]++
	after, err, cancelled := beats, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil), temporal.NewCanceledError()
	switch {
	case in.Task == "worker-0":
		after, cancelled = time.Hour, temporal.NewCanceledError(spec.Exit{Cause: spec.CauseCollateral, Signal: "SIGTERM"})
		if s.fails > 0 {
			after = s.fails
		}
		err = temporal.NewNonRetryableApplicationError("it failed", spec.ErrUnexpectedExit, nil, spec.Exit{ExitCode: 1, Cause: spec.CauseOrigin})
	case s.offers[in.Task] > 1:
		after, err = workflow.GetActivityOptions(ctx).ScheduleToStartTimeout, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		cancelled = temporal.NewCanceledError("ACTIVITY_ID_NOT_STARTED")
	case in.Task == "worker-2":
		after += 100 * time.Millisecond
	}
	end, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		if workflow.Sleep(ctx, after) != nil {
			err = cancelled
		}
		fc := temporal.GetDefaultFailureConverter()
		settable.SetError(fc.FailureToError(fc.ErrorToFailure(err)))
	})
	return end
}

// Host b has two tasks and falls silent. The first is given up, and the offer of the second is
// cancelled. The next generation waits no longer: the last lease has ended for both. If another task
// has failed before, it waits for the rest of the lease. Both have an exit.
func TestTheNextGenerationWaitsForTheLastLeaseOnly(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails time.Duration
		begin time.Duration // of the next generation
	}{
		{"given up", 0, passed + 2*time.Second},
		{"another task fails", 20 * time.Second, passed + 100*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			var began [2]time.Time
			var env *testsuite.TestWorkflowEnvironment
			env = newEnv(t, activities{
				"Reserve": func(ctx context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
					if hostOf(ctx) == "a" {
						began[in.Generation] = env.Now()
					}
					return reserved(hostOf(ctx), len(in.Tasks)), nil
				},
				"Prepare": func(context.Context) (hostapi.PrepareOutput, error) { return hostapi.PrepareOutput{Reaches: true}, nil },
				"RunTask": func(context.Context) (spec.Exit, error) {
					return spec.Exit{Restart: 1, Cause: spec.CauseCompleted}, nil
				},
			})
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&silentHost{fails: c.fails, offers: map[string]int{}}}})
			env.OnActivity("SettleTasks", mock.Anything, mock.Anything).After(time.Hour).Return(spec.RequestAnswer{}, nil)
			execute(t, env, spec.RunSpec{RestartScope: spec.RestartScopeGroup, Tasks: workers("a:1", "b:1", "b:2")}, nil)
			require.NoError(t, env.GetWorkflowError())
			assert.WithinDuration(t, began[0].Add(c.begin), began[1], time.Second)
			var r spec.RunResult
			require.NoError(t, env.GetWorkflowResult(&r))
			for _, task := range r.Tasks[1:] {
				if assert.Len(t, task.Exits, 2, task.Name) {
					assert.Equal(t, spec.CauseHostLost, task.Exits[0].Cause)
				}
			}
		})
	}
}
