package workflows_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// localTries runs a task on a local queue. Its host answers each reservation try with answer. It
// reports for each try of Reserve and Release whether it was part of a workflow task.
func localTries(t *testing.T, answer func(try int) error) (tries map[string][]bool, env *testsuite.TestWorkflowEnvironment) {
	tries = map[string][]bool{}
	note := func(ctx context.Context, name string) int {
		tries[name] = append(tries[name], activity.GetInfo(ctx).IsLocalActivity)
		return len(tries[name])
	}
	env = newEnv(t, activities{
		"Reserve": func(ctx context.Context, _ hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
			return reserved("a", 1), answer(note(ctx, "Reserve"))
		},
		"Release": func(ctx context.Context, _ hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
			note(ctx, "Release")
			return hostapi.ReleaseOutput{}, nil
		},
	})
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.LocalQueue("test")})
	execute(t, env, spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker"}}}, nil)
	return tries, env
}

func TestALocalReservationIsPartOfTheWorkflowTask(t *testing.T) {
	tries, env := localTries(t, func(int) error { return nil })
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, map[string][]bool{"Reserve": {true}, "Release": {true}}, tries)
}

// A workflow task does not wait until a resource becomes free, because users' requests would wait
// for the workflow task.
func TestALocalReservationThatFailsIsRetriedByTheServer(t *testing.T) {
	tries, env := localTries(t, func(try int) error {
		if try < 3 {
			return temporal.NewApplicationError("the port is taken", spec.ErrPlacement)
		}
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, []bool{true, false, false}, tries["Reserve"])
}

func TestALocalRefusalIsForGood(t *testing.T) {
	tries, env := localTries(t, func(int) error {
		return temporal.NewNonRetryableApplicationError("no such program", spec.ErrInvalidRunSpec, nil)
	})
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	assert.Equal(t, spec.ErrInvalidRunSpec, app.Type())
	assert.Equal(t, []bool{true}, tries["Reserve"])
}

// A short run on a local queue is a single workflow task, even if its tasks are stopped.
func TestALocalStopIsPartOfTheWorkflowTask(t *testing.T) {
	stopped := make(chan struct{})
	env := newEnv(t, activities{
		"Reserve": func(context.Context, hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
			return reserved("a", 3), nil
		},
		"RunTask": func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
			assert.True(t, activity.GetInfo(ctx).IsLocalActivity)
			if in.Task == "worker-0" {
				return spec.Exit{ExitCode: 1, Cause: spec.CauseOrigin}, nil
			}
			<-stopped
			return spec.Exit{Cause: spec.CauseCollateral, Signal: "SIGTERM"}, nil
		},
		"StopTasks": func(ctx context.Context, in hostapi.TasksInput) (hostapi.None, error) {
			assert.True(t, activity.GetInfo(ctx).IsLocalActivity)
			assert.Equal(t, []string{"worker-1", "worker-2"}, in.Tasks)
			close(stopped)
			return hostapi.None{}, nil
		},
	})
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.LocalQueue("test")})
	execute(t, env, spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(3)}}}, nil)
	require.ErrorContains(t, env.GetWorkflowError(), "worker-0")
}

// A process that is still being stopped after the workflow task is left to an activity that only
// stops it.
func TestALocalStopContinuesAsAnActivity(t *testing.T) {
	stopped := make(chan struct{})
	env := newEnv(t, activities{
		"Reserve": func(context.Context, hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
			return reserved("a", 2), nil
		},
		"RunTask": func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
			here := activity.GetInfo(ctx).IsLocalActivity
			assert.NotEqual(t, here, in.Stop, in.Task)
			switch {
			case in.Task == "worker-0":
				return spec.Exit{ExitCode: 1, Cause: spec.CauseOrigin}, nil
			case here:
				<-stopped
				return spec.Exit{}, temporal.NewApplicationError("it lives", "HostWorkerAway")
			}
			return spec.Exit{Cause: spec.CauseCollateral, ExitCode: 7}, nil
		},
		"StopTasks": func(context.Context, hostapi.TasksInput) (hostapi.None, error) {
			close(stopped)
			return hostapi.None{}, nil
		},
	})
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.LocalQueue("test")})
	execute(t, env, spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}}}, nil)
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	var result spec.RunResult
	require.NoError(t, app.Details(&result))
	assert.Equal(t, 7, result.Tasks[1].Exit.ExitCode)
}

// A task that lives longer than a workflow task should take continues as an activity, which adopts
// its process.
func TestALocalTaskContinuesAsAnActivity(t *testing.T) {
	for name, c := range map[string]struct {
		spec  spec.RunSpec
		first bool // whether it is tried within the workflow task
	}{
		"short":                    {spec.RunSpec{}, true},
		"with a timeout":           {spec.RunSpec{Timeout: spec.DurationOf(time.Hour)}, false},
		"restarted":                {spec.RunSpec{AutoRestart: true}, false},
		"stopped without a server": {spec.RunSpec{OnDisconnect: spec.OnDisconnectStop(time.Hour)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var tries []bool
			env := newEnv(t, activities{
				"Reserve": func(context.Context, hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
					return reserved("a", 1), nil
				},
				"RunTask": func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
					here := activity.GetInfo(ctx).IsLocalActivity
					tries = append(tries, here)
					if here {
						return spec.Exit{}, temporal.NewApplicationError("it lives", "HostWorkerAway")
					}
					assert.Equal(t, len(tries) == 2, in.Offer > 0, "its fence is newer")
					return spec.Exit{Cause: spec.CauseCompleted}, nil
				},
			})
			env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.LocalQueue("test")})
			c.spec.Tasks = []spec.TaskGroup{{Type: "worker"}}
			execute(t, env, c.spec, nil)
			require.NoError(t, env.GetWorkflowError())
			if c.first {
				assert.Equal(t, []bool{true, false}, tries)
			} else {
				assert.Equal(t, []bool{false}, tries)
			}
		})
	}
}

// afterWorld is a world with earlier runs. A run that is not in ends does not exist.
func afterWorld(t *testing.T, ends map[string]spec.RunEnd) (*world, *atomic.Int32) {
	w := newWorld(t)
	w.SetContinueAsNewSuggested(false)
	var launched atomic.Int32
	w.RegisterActivityWithOptions(func(ctx context.Context, in spec.RunEndInput) (out spec.RunEndOutput, err error) {
		assert.Equal(t, spec.AfterActivity+in.Run, activity.GetInfo(ctx).ActivityID)
		end, exists := ends[in.Run]
		switch {
		case !exists:
			return out, nil
		case in.Execution == "":
			return spec.RunEndOutput{Execution: "first of " + in.Run}, nil
		}
		assert.Equal(t, "first of "+in.Run, in.Execution)
		if activity.GetInfo(ctx).Attempt < 3 || end == "" {
			return out, temporal.NewApplicationError("it has not ended", "Unchanged")
		}
		return spec.RunEndOutput{Execution: in.Execution, End: end}, nil
	}, activity.RegisterOptions{Name: spec.ActivityRunEnd})
	w.OnActivity("RunTask", mock.Anything, mock.Anything).Return(func(context.Context, hostapi.RunTaskInput) (spec.Exit, error) {
		launched.Add(1)
		return spec.Exit{Cause: spec.CauseCompleted}, nil
	}).Maybe()
	return w, &launched
}

func TestARunBeginsAfterOthers(t *testing.T) {
	w, launched := afterWorld(t, map[string]spec.RunEnd{"a": spec.EndedWell, "b": spec.EndedBadly, "c": spec.EndedSkipped})
	require.NoError(t, w.start(t, spec.RunSpec{After: []spec.After{{Run: "a"}, {Run: "b", When: spec.AfterFailed}, {Run: "c", When: spec.AfterAny}}}, nil))
	assert.Equal(t, int32(1), launched.Load())
}

// A run is skipped as soon as an earlier run did not finish as the spec requires.
func TestARunIsSkipped(t *testing.T) {
	w, launched := afterWorld(t, map[string]spec.RunEnd{"open": "", "bad": spec.EndedBadly})
	err := w.start(t, spec.RunSpec{After: []spec.After{{Run: "open"}, {Run: "bad"}}}, nil)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, spec.ErrSkipped, failed.Type())
	var r spec.RunResult
	require.NoError(t, failed.Details(&r))
	assert.Equal(t, spec.VerdictSkipped, r.Verdict)
	assert.Equal(t, "run bad did not succeed", r.Message)
	assert.Equal(t, spec.EndedByAfter, r.EndedBy)
	assert.Zero(t, launched.Load())
	assert.Empty(t, w.generations, "no host was asked")
}

func TestNoSuchEarlierRun(t *testing.T) {
	for run, want := range map[string]string{
		"none":                     `after[0].run: there is no run "none"`,
		"default-test-workflow-id": "after[0].run: is this run's own ID",
	} {
		w, _ := afterWorld(t, nil)
		err := w.start(t, spec.RunSpec{After: []spec.After{{Run: run}}}, nil)
		assert.ErrorContains(t, err, want)
	}
}

func TestARunThatWaitsForAnotherIsCancelled(t *testing.T) {
	w, launched := afterWorld(t, nil)
	w.OnActivity(spec.ActivityRunEnd, mock.Anything, spec.RunEndInput{Run: "open"}).Return(spec.RunEndOutput{Execution: "x"}, nil)
	w.OnActivity(spec.ActivityRunEnd, mock.Anything, spec.RunEndInput{Run: "open", Execution: "x"}).
		After(24*time.Hour).Return(spec.RunEndOutput{Execution: "x", End: spec.EndedWell}, nil)
	w.RegisterDelayedCallback(w.CancelWorkflow, time.Hour)
	err := w.start(t, spec.RunSpec{After: []spec.After{{Run: "open"}}}, nil)
	require.Error(t, err)
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, err, &cancelled)
	assert.Zero(t, launched.Load())
}

// The end of a run does not wait for a host that the run has given up, and the result names what
// is missing. Its processes count as lost. A host that itself reports a loss is present, and is
// released.
func TestTheEndWaitsForNoHostThatIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		name     string
		loss     error // loss of worker-1, which is on host b
		released []string
		missing  bool
	}{
		{"given up", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil), []string{"a/i"}, true},
		{"the host reports the loss", nil, []string{"a/i", "b/i"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			var released []string
			env := newEnv(t, activities{
				"RunTask": func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
					if in.Task == "worker-1" {
						return spec.Exit{ExitCode: -1, Cause: spec.CauseHostLost}, c.loss
					}
					<-ctx.Done()
					if in.Task == "worker-2" {
						return spec.Exit{}, temporal.NewCanceledError() // no worker had it
					}
					return spec.Exit{Cause: spec.CauseCollateral, Signal: "SIGTERM"}, nil
				},
				"Release": func(ctx context.Context) (hostapi.ReleaseOutput, error) {
					mu.Lock()
					defer mu.Unlock()
					released = append(released, strings.Split(activity.GetInfo(ctx).TaskQueue, "/host/")[1])
					return hostapi.ReleaseOutput{}, nil
				},
			})
			execute(t, env, spec.RunSpec{Tasks: workers("a:1", "b:1", "b:2")}, nil)
			var app *temporal.ApplicationError
			require.ErrorAs(t, env.GetWorkflowError(), &app)
			assert.Equal(t, spec.ErrHostLost, app.Type(), app.Message())
			slices.Sort(released)
			assert.Equal(t, c.released, released)
			var r spec.RunResult
			require.NoError(t, app.Details(&r))
			if c.missing {
				assert.Contains(t, strings.Join(r.NotReleased, "\n"), "host b did not return; values and earlier exits that only it has are missing")
				assert.Equal(t, spec.CauseHostLost, r.Tasks[2].Exit.Cause)
			} else {
				assert.Empty(t, r.NotReleased)
				assert.Nil(t, r.Tasks[2].Exit, "it started no process")
			}
		})
	}
}

// A run sends the notice of its end before it closes. If a host does not accept the notice, any
// other host may. The result reports a notice that could not be sent.
func TestRunNotifies(t *testing.T) {
	const refused = "example.com answered 404 Not Found"
	for _, problem := range []string{"", refused} {
		w := newWorld(t)
		var queues []string
		var told hostapi.NotifyInput
		register(w.TestWorkflowEnvironment, activities{"Notify": func(ctx context.Context, in hostapi.NotifyInput) (hostapi.None, error) {
			queues, told = append(queues, activity.GetInfo(ctx).TaskQueue), in
			switch {
			case len(queues) == 1:
				return hostapi.None{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
			case activity.GetInfo(ctx).Attempt < 3:
				return hostapi.None{}, temporal.NewApplicationError("busy", spec.ErrNotify)
			case problem != "":
				return hostapi.None{}, temporal.NewNonRetryableApplicationError(problem, spec.ErrNotify, nil)
			}
			return hostapi.None{}, nil
		}})
		hook := spec.Notification{Webhook: spec.Variable{From: spec.Source{FromFile: "/hook"}}}
		err := w.start(t, spec.RunSpec{Notify: hook}, nil)
		var failed *temporal.ApplicationError
		var result spec.RunResult
		require.ErrorAs(t, err, &failed)
		require.NoError(t, failed.Details(&result))
		assert.Equal(t, problem, result.NoticeFailed)

		first, any := spec.InstanceQueue(spec.PrivateQueue("test"), "a", "i"), spec.HostsQueue(spec.PrivateQueue("test"))
		assert.Equal(t, []string{first, any, any, any}, queues)
		assert.Equal(t, hook, told.Notification)
		n := told.Notice
		assert.Equal(t, "run default-test-workflow-id failed: Subprocess worker-0 exited with exit code 3", n.Text)
		assert.Equal(t, spec.NotifyEnd, n.Event)
		assert.Equal(t, spec.NoticeID(n.Run, n.Execution, 1), n.ID)
		assert.Equal(t, 3, *n.ExitCode)
	}
}
