package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// adopting is a world whose host adopts the tasks of earlier executions, which do not end by
// themselves.
type adopting struct {
	*world
	ran      []hostapi.RunTaskInput
	asked    []spec.Group
	released []hostapi.ReleaseInput
	// token is of the task that does not end by itself.
	token []byte
}

// end ends the process of that task, soon, because it was stopped.
func (w *adopting) end(t *testing.T) {
	w.RegisterDelayedCallback(func() {
		require.NoError(t, w.CompleteActivity(w.token, nil, temporal.NewCanceledError(spec.Exit{ExitCode: -15, Cause: spec.CauseCollateral})))
	}, time.Second)
}

var serviceOfA = spec.HostService{Host: "a", Address: "10.0.0.7:4711", Fingerprint: "f", Token: "t"}

func newAdopting(t *testing.T) *adopting {
	w := &adopting{world: newWorld(t)}
	w.RegisterActivityWithOptions(func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
		w.generations = append(w.generations, in.Generation)
		return hostapi.ReserveOutput{Host: "a", Instance: "i", Addresses: []string{"127.0.0.1:1"}, Service: &serviceOfA}, nil
	}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Reserve), DisableAlreadyRegisteredCheck: true})
	w.RegisterActivityWithOptions(func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
		in.Workflow = "" // only activities of groups set it
		w.ran = append(w.ran, in)
		if in.Task == "brief-0" {
			return spec.Exit{Cause: spec.CauseCompleted}, nil
		}
		w.token = activity.GetInfo(ctx).TaskToken
		return spec.Exit{}, activity.ErrResultPending
	}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.RunTask), DisableAlreadyRegisteredCheck: true})
	w.RegisterActivityWithOptions(func(_ context.Context, in spec.HostRequest[spec.StacksRequest]) (spec.RequestAnswer, error) {
		w.asked = append(w.asked, in.Group)
		w.end(t)
		return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
	}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.CaptureStacks)})
	w.RegisterActivityWithOptions(func(_ context.Context, in hostapi.CheckStartInput) (hostapi.None, error) {
		w.asked = append(w.asked, in.Group)
		return hostapi.None{}, nil
	}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.CheckStart)})
	w.RegisterActivityWithOptions(func(_ context.Context, in hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
		w.released = append(w.released, in)
		return hostapi.ReleaseOutput{}, nil
	}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Release), DisableAlreadyRegisteredCheck: true})
	return w
}

// resumed is a world in which the history is short again.
func resumed(t *testing.T) *adopting {
	w := newAdopting(t)
	w.SetContinueAsNewSuggested(false)
	return w
}

func TestARunThatIsLongGoesOnWithItsTasks(t *testing.T) {
	s := spec.RunSpec{Timeout: spec.DurationOf(time.Hour)}
	w := newAdopting(t)
	w.SetCurrentHistoryLength(4000)
	r := next(t, w.start(t, s, nil))
	require.Empty(t, w.released, "the hosts keep what they have")
	assert.NotEmpty(t, r.Run)
	assert.Equal(t, 1, r.Execution)
	require.Len(t, r.Hosts, 1)
	assert.Equal(t, []string{"worker-0"}, r.Hosts[0].Tasks)
	assert.Equal(t, &serviceOfA, r.Hosts[0].Service, "readers go on")
	assert.Equal(t, map[string]string{"worker-0": "127.0.0.1:1"}, r.Addresses)

	w = resumed(t)
	r.Started = w.Now().Add(-10 * time.Minute)
	w.RegisterDelayedCallback(func() {
		w.UpdateWorkflowNoRejection(spec.UpdateStartTask.Name, "start", t, spec.StartTaskRequest{Task: "brief-0", Command: []string{"true"}})
	}, time.Second)
	began := w.Now()
	err := w.start(t, s, r)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, spec.ErrSubprocessTimeout, failed.Type(), failed.Message())
	assert.InDelta(t, 50, w.Now().Sub(began).Minutes(), 1, "the time goes on")
	assert.Empty(t, w.generations, "nothing is placed again")
	require.Len(t, w.ran, 2)
	assert.Equal(t, hostapi.RunTaskInput{Run: r.Run, Execution: 1, Task: "worker-0"}, w.ran[0])
	assert.Equal(t, "brief-0", w.ran[1].Task)
	assert.Equal(t, []hostapi.ReleaseInput{{Run: r.Run}}, w.released)
	for _, c := range w.asked {
		assert.Equal(t, r.Run, c.Run)
	}
}

// Between two generations the hosts are not given back either.
func TestAGroupThatIsLongKeepsItsHosts(t *testing.T) {
	w := newAdopting(t)
	w.RegisterActivityWithOptions(func(context.Context, hostapi.RunTaskInput) (spec.Exit, error) {
		exit := spec.Exit{ExitCode: 3, Cause: spec.CauseOrigin}
		return spec.Exit{}, temporal.NewNonRetryableApplicationError("failed", spec.ErrUnexpectedExit, nil, exit)
	}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.RunTask), DisableAlreadyRegisteredCheck: true})
	r := next(t, w.start(t, groupSpec, nil))
	assert.Empty(t, w.released)
	assert.Equal(t, 1, r.Machine.Generation)
	assert.Empty(t, r.Machine.Running)

	again := resumed(t)
	again.RegisterActivityWithOptions(func(context.Context, hostapi.RunTaskInput) (spec.Exit, error) {
		return spec.Exit{Cause: spec.CauseCompleted}, nil
	}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.RunTask), DisableAlreadyRegisteredCheck: true})
	require.NoError(t, again.start(t, groupSpec, r))
	assert.Equal(t, []int{1}, again.generations)
	assert.Equal(t, []hostapi.ReleaseInput{{Run: r.Run}}, again.released)
}

// A run that serves a request does not continue as new, and refuses further requests until
// then, to be repeated. It accepts requests that end the run.
func TestARunDoesNotGoOnInTheMiddleOfARequest(t *testing.T) {
	for name, ends := range map[string]bool{"signal-task": false, "terminate-all": true} {
		t.Run(name, func(t *testing.T) {
			w := newAdopting(t)
			w.SetContinueAsNewSuggested(false)
			w.SetCurrentHistoryLength(4000)
			var answer spec.RequestAnswer
			w.RegisterActivityWithOptions(func(_ context.Context, in spec.HostRequest[spec.SignalRequest]) (spec.RequestAnswer, error) {
				if ends {
					w.UpdateWorkflowNoRejection(spec.UpdateTerminateAll.Name, "end", t, spec.TerminateAllRequest{})
				}
				time.Sleep(50 * time.Millisecond) // until the update is served
				return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
			}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.SignalTasks)})
			w.RegisterActivityWithOptions(func(_ context.Context, in spec.HostRequest[spec.TaskRequest]) (spec.RequestAnswer, error) {
				w.end(t)
				return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
			}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.TerminateTasks)})
			w.RegisterDelayedCallback(func() {
				w.SetContinueAsNewSuggested(true)
				w.UpdateWorkflow(spec.UpdateSignalTask.Name, "signal", &testsuite.TestUpdateCallback{
					OnAccept: func() {}, OnReject: func(err error) { assert.NoError(t, err) },
					OnComplete: func(v any, err error) {
						assert.NoError(t, err)
						answer, _ = v.(spec.RequestAnswer)
					},
				}, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"})
			}, time.Second)
			err := w.start(t, spec.RunSpec{}, nil)
			assert.Equal(t, []string{"worker-0"}, answer.Tasks)
			if ends {
				require.True(t, temporal.IsCanceledError(err), "%v", err)
				return
			}
			next(t, err)
		})
	}
}
