package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// togetherWorld has two hosts, a and b. Their tasks end when a test ends them, or when their
// activity is cancelled.
type togetherWorld struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T

	mu sync.Mutex // activities run concurrently
	// told holds the messages to each host, in order.
	told map[string][]spec.Stopping
	// tokens maps tasks to the task tokens of their open activities.
	tokens map[string][]byte
	// groups maps tasks to the workflow IDs of their groups.
	groups map[string]string
	// reserved holds the stops in the inputs of reservations.
	reserved []*spec.Stopping
	// busy is how many times a host refuses a next generation because it is full.
	busy int
}

func newTogetherWorld(t *testing.T) *togetherWorld {
	w := &togetherWorld{t: t, told: map[string][]spec.Stopping{}, tokens: map[string][]byte{}, groups: map[string]string{}}
	w.TestWorkflowEnvironment = newEnv(t, activities{
		"Reserve": func(ctx context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if in.Generation > 0 && w.busy > 0 {
				w.busy--
				return hostapi.ReserveOutput{}, errors.New("no room yet")
			}
			w.reserved = append(w.reserved, in.Stopping)
			return reserved(hostOf(ctx), len(in.Tasks)), nil
		},
		"RunTask": func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tokens[in.Task] = activity.GetInfo(ctx).TaskToken
			w.groups[in.Task] = activity.GetInfo(ctx).WorkflowExecution.ID
			return spec.Exit{}, activity.ErrResultPending
		},
		"TellStopping": func(ctx context.Context, in hostapi.TellStoppingInput) (hostapi.None, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told[hostOf(ctx)] = append(w.told[hostOf(ctx)], in.Stopping)
			return hostapi.None{}, nil
		},
	})
	return w
}

// end makes tasks exit on their own with the given exit code.
func (w *togetherWorld) end(code int, tasks ...string) {
	for _, task := range tasks {
		out := spec.Exit{Cause: spec.CauseCompleted}
		if code != 0 {
			out = spec.Exit{Cause: spec.CauseOrigin, ExitCode: code}
		}
		w.mu.Lock()
		token, group := w.tokens[task], w.groups[task]
		w.mu.Unlock()
		require.NoError(w.t, w.CompleteActivity(token, out, nil))
		// The environment wakes only the run, not its groups.
		_ = w.SignalWorkflowByID(group, "wake", nil)
	}
}

// run runs three tasks, one of them on host b.
func (w *togetherWorld) run(s spec.RunSpec) (*spec.RunResult, error) {
	s.Tasks = []spec.TaskGroup{{Type: "worker", Count: new(2)}, {Type: "ps", Addresses: []string{"b:2222"}}}
	execute(w.t, w.TestWorkflowEnvironment, s, nil)
	err := w.GetWorkflowError()
	var (
		app       *temporal.ApplicationError
		cancelled *temporal.CanceledError
		result    *spec.RunResult
	)
	switch {
	case err == nil:
		require.NoError(w.t, w.GetWorkflowResult(&result))
	case errors.As(err, &app):
		require.NoError(w.t, app.Details(&result))
	case errors.As(err, &cancelled):
		require.NoError(w.t, cancelled.Details(&result))
	default:
		w.t.Fatal(err)
	}
	return result, err
}

// ask sends a request after some workflow time.
func (w *togetherWorld) ask(after time.Duration, update fmt.Stringer, q any, answered func(spec.Stopping, error)) {
	w.RegisterDelayedCallback(func() {
		w.UpdateWorkflow(update.String(), "", &testsuite.TestUpdateCallback{
			OnReject: func(err error) { answered(spec.Stopping{}, err) },
			OnAccept: func() {},
			OnComplete: func(v any, err error) {
				s, _ := v.(spec.Stopping)
				answered(s, err)
			},
		}, q)
	}, after)
}

func (w *togetherWorld) status() spec.Status {
	v := must.Get(w.QueryWorkflow(spec.QueryStatus))(w.t)
	var s spec.Status
	require.NoError(w.t, v.Get(&s))
	return s
}

// A request to stop is answered immediately with the run's state, every host receives it, and the
// run ends when the tasks have.
func TestStopTogether_CO01_CO08(t *testing.T) {
	w := newTogetherWorld(t)
	var answers []spec.Stopping
	keep := func(s spec.Stopping, err error) {
		require.NoError(t, err)
		answers = append(answers, s)
	}
	first := spec.TogetherRequest{Task: "worker-1", Key: "k", Error: &spec.TogetherError{Kind: "RuntimeError", Message: "First", Traceback: "in x"}}
	w.ask(time.Second, spec.UpdateStopTogether, first, keep)
	w.ask(2*time.Second, spec.UpdateStopTogether, spec.TogetherRequest{Task: "ps-0", Error: &spec.TogetherError{Message: "Too late"}}, keep)
	w.RegisterDelayedCallback(func() {
		s := w.status()
		assert.Equal(t, spec.RunStopping, s.State)
		require.NotNil(t, s.Stopping)
		assert.Equal(t, "worker-1", s.Stopping.By)
		assert.Contains(t, detailsOf(t, w.TestWorkflowEnvironment), "The tasks are stopping gracefully, and have until "+
			s.Stopping.Deadline.Format("2006-01-02 15:04:05")+" UTC:\n\n```\nworker-1 asked all tasks to stop: RuntimeError: First\n```\n")
		w.end(0, "worker-0", "ps-0")
		w.end(3, "worker-1")
	}, 3*time.Second)
	r, err := w.run(spec.RunSpec{})
	require.ErrorContains(t, err, "worker-1 reported an error: RuntimeError: First")

	require.Len(t, answers, 2)
	assert.Equal(t, answers[0], answers[1])
	assert.Equal(t, spec.Stopping{
		Seq: 1, Stop: true, By: "worker-1", Error: first.Error, Asked: answers[0].Asked, Deadline: answers[0].Asked.Add(2 * time.Minute),
	}, answers[0])
	assert.Len(t, w.told, 2)
	for host, told := range w.told {
		require.Len(t, told, 1, host)
		assert.Equal(t, answers[0].String(), told[0].String(), host)
		assert.Equal(t, 1, told[0].Seq)
	}
	assert.Equal(t, spec.VerdictFailed, r.Verdict)
	assert.Equal(t, spec.ErrSubprocess, r.ErrorType)
	assert.Equal(t, 3, r.ExitCode)
	assert.Equal(t, "worker-1", r.FirstFailure.Task)
	assert.Equal(t, "worker-1", r.Stopping.By)
}

// A task that still runs when the grace is over is named and stopped.
func TestStragglers_CO06_SEED61(t *testing.T) {
	w := newTogetherWorld(t)
	w.ask(time.Second, spec.UpdateStopTogether, spec.TogetherRequest{Reason: "enough"}, func(s spec.Stopping, err error) {
		require.NoError(t, err)
		assert.Equal(t, s.Asked.Add(5*time.Second), s.Deadline)
		w.end(0, "worker-1")
	})
	r, err := w.run(spec.RunSpec{StopTogether: spec.StopTogether{Grace: spec.DurationOf(5 * time.Second)}})
	require.ErrorContains(t, err, "Coordinator stopped with tasks still running: worker-0 ps-0")
	assert.Equal(t, spec.VerdictTimedOut, r.Verdict)
	assert.Equal(t, spec.ErrSubprocessTimeout, r.ErrorType)
	assert.Equal(t, 124, r.ExitCode)
	assert.Equal(t, []string{"worker-0", "ps-0"}, r.Stragglers)
	assert.Contains(t, outcome.Lines(r, outcome.Options{}), "An operator asked all tasks to stop: enough")
}

// Impossible requests are refused immediately, with a reason.
func TestStopTogetherIsRefused(t *testing.T) {
	w := newTogetherWorld(t)
	refused := func(q any, name fmt.Stringer, why string, after time.Duration) {
		w.ask(after, name, q, func(_ spec.Stopping, err error) { require.ErrorContains(t, err, why) })
	}
	refused(spec.TogetherRequest{Task: "worker-7"}, spec.UpdateStopTogether, "worker-7 is not a task of this run", time.Second)
	refused(spec.TogetherRequest{Task: "worker-0", Generation: 1}, spec.UpdateStopTogether, "restart 0 of all tasks has started; this request is for restart 1", time.Second)
	refused(spec.TogetherRequest{Error: &spec.TogetherError{}}, spec.UpdateStopTogether, "error: is empty", time.Second)
	w.RegisterDelayedCallback(func() { w.end(0, "worker-0", "worker-1", "ps-0") }, 2*time.Second)
	r := must.Get(w.run(spec.RunSpec{}))(t)
	assert.Nil(t, r.Stopping)
	assert.Empty(t, w.told)
}

// On many hosts, the run's spec and cluster are not part of each host's input.
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
			values := map[string]converter.EncodedValues{}
			read := func(at *hostapi.Shared, value any) {
				if at != nil {
					require.NotEmpty(t, at.RunID)
					require.NoError(t, values[at.WorkflowID].Get(value))
				}
			}
			env := newEnv(t, activities{
				"Reserve": func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
					assert.Equal(t, c.shared == 0, in.SharedSpec == nil)
					assert.Equal(t, c.shared == 0, in.Spec != nil)
					var shared hostapi.ReserveInput
					if read(in.SharedSpec, &shared); shared.Spec != nil {
						in.Spec = shared.Spec
					}
					assert.Len(t, in.Spec.TaskList(), c.hosts)
					return reserved(strings.TrimPrefix(in.Tasks[0], "worker-"), 1), nil
				},
				"Prepare": func(_ context.Context, in hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
					assert.Equal(t, c.shared == 0, in.SharedCluster == nil)
					read(in.SharedCluster, &in.Cluster)
					assert.Len(t, in.Cluster.Members, c.hosts)
					return hostapi.PrepareOutput{}, nil
				},
			})
			env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
				values[info.WorkflowExecution.ID] = args
			})
			var addresses []string
			for i := range c.hosts {
				addresses = append(addresses, fmt.Sprintf("h%d:1", i))
			}
			environment := map[string]string{}
			for i := range 10 {
				environment[fmt.Sprint("X", i)] = strings.Repeat("x", c.environment/10)
			}
			execute(t, env, spec.RunSpec{Tasks: workers(addresses...), Env: spec.EnvOf(environment)}, nil)
			require.NoError(t, env.GetWorkflowError())
			assert.Len(t, values, c.shared)
		})
	}
}
