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

// silentHost answers RunTask in the first generation like the server: worker-0 runs on one host,
// and the other host falls silent immediately.
type silentHost struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	fails  time.Duration // of worker-0, or 0
	back   bool          // it answers when asked
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
	if name == "Answer" && !s.back {
		within := workflow.GetActivityOptions(ctx).ScheduleToCloseTimeout
		return ends(ctx, within, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil), temporal.NewCanceledError())
	}
	in, ok := append(args, nil)[0].(hostapi.RunTaskInput)
	if !ok || in.Generation > 0 || s.back && s.offers[in.Task] > 0 {
		return s.WorkflowOutboundInterceptorBase.Next.ExecuteActivity(ctx, name, args...)
	}
	s.offers[in.Task]++
	after := beats
	var end, cancelled any = temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil), temporal.NewCanceledError()
	switch in.Task {
	case "worker-0":
		after, cancelled = time.Hour, spec.Exit{Cause: spec.CauseCollateral, Signal: "SIGTERM"}
		if s.fails > 0 {
			after = s.fails
		}
		end = spec.Exit{ExitCode: 1, Cause: spec.CauseOrigin}
	case "worker-2":
		after += 100 * time.Millisecond
	}
	return ends(ctx, after, end, cancelled)
}

// ends returns an activity's outcome: end after the given time, or cancelled if it is canceled
// before.
func ends(ctx workflow.Context, after time.Duration, end, cancelled any) workflow.Future {
	future, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		if workflow.Sleep(ctx, after) != nil {
			end = cancelled
		}
		if err, ok := end.(error); ok {
			fc := temporal.GetDefaultFailureConverter()
			settable.SetError(fc.FailureToError(fc.ErrorToFailure(err)))
			return
		}
		settable.SetValue(end)
	})
	return future
}

// Host b has two tasks and falls silent. It is asked, but offered nothing, because the offer might
// go to a poll that the server still has of it. The first task is given up, and the second
// cancelled. The next generation does not wait, because the last lease has expired for both. If
// another task failed before, it waits for the rest of the lease. Both have an exit.
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
			b := &silentHost{fails: c.fails, offers: map[string]int{}}
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{b}})
			env.OnActivity("SettleTasks", mock.Anything, mock.Anything).After(time.Hour).Return(spec.RequestAnswer{}, nil)
			execute(t, env, spec.RunSpec{RestartScope: spec.RestartScopeGroup, Tasks: workers("a:1", "b:1", "b:2")}, nil)
			require.NoError(t, env.GetWorkflowError())
			assert.Equal(t, map[string]int{"worker-0": 1, "worker-1": 1, "worker-2": 1}, b.offers)
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

// A host that was silent for a while answers, and is offered its tasks again.
func TestASilentHostThatAnswersKeepsItsTasks(t *testing.T) {
	env := newEnv(t, activities{
		"Prepare": func(context.Context) (hostapi.PrepareOutput, error) { return hostapi.PrepareOutput{Reaches: true}, nil },
	})
	offers := map[string]int{"worker-0": 1}
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&silentHost{back: true, offers: offers}}})
	execute(t, env, spec.RunSpec{Tasks: workers("a:1", "b:1", "b:2")}, nil)
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, map[string]int{"worker-0": 1, "worker-1": 1, "worker-2": 1}, offers, "before they are offered again")
}

// A run with a silent host finishes once nothing lives on the host. It does not send the host its
// release, which would go to an open poll of the host, and take as long as a release may.
func TestTheEndWaitsForASilentHostOnlyABit(t *testing.T) {
	for reaches, ends := range map[bool]time.Duration{true: 10*time.Second + passed, false: beats + 20*time.Second} {
		var released []string
		env := newEnv(t, activities{
			"Prepare": func(context.Context) (hostapi.PrepareOutput, error) {
				return hostapi.PrepareOutput{Reaches: reaches}, nil
			},
			"Release": func(ctx context.Context) (hostapi.ReleaseOutput, error) {
				released = append(released, hostOf(ctx))
				return hostapi.ReleaseOutput{}, nil
			},
		})
		env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&silentHost{fails: 10 * time.Second, offers: map[string]int{}}}})
		begun := env.Now()
		execute(t, env, spec.RunSpec{Tasks: workers("a:1", "b:1")}, nil)
		require.Error(t, env.GetWorkflowError())
		assert.Equal(t, []string{"a"}, released)
		assert.WithinDuration(t, begun.Add(ends), env.Now(), time.Second, "hosts that reach each other: %v", reaches)
	}
}
