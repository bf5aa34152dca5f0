package workflows_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// world is a host without processes, under a workflow with a history that has always become long.
type world struct {
	*testsuite.TestWorkflowEnvironment
	// generations lists the reserved generations, and releases counts the calls of Release.
	generations []int
	releases    int
	// hosts lists the task's hosts by generation.
	hosts []string
	mu    sync.Mutex // for releases, which are concurrent in a run of several hosts
	// onRelease is called within each Release.
	onRelease func(n int)
}

func newWorld(t *testing.T) *world {
	w := &world{hosts: []string{"a"}, onRelease: func(int) {}}
	w.TestWorkflowEnvironment = newEnv(t, activities{
		"Reserve": func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
			w.generations = append(w.generations, in.Generation)
			return reserved(w.hosts[min(in.Generation, len(w.hosts)-1)], 1), nil
		},
		"RunTask": func(_ context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
			return fails(spec.Exit{Restart: in.Generation, ExitCode: 3, Cause: spec.CauseOrigin})
		},
		"Release": func(context.Context) (hostapi.ReleaseOutput, error) {
			w.mu.Lock()
			w.releases++
			n := w.releases
			w.mu.Unlock()
			w.onRelease(n)
			return hostapi.ReleaseOutput{Output: []string{"a line"}}, nil
		},
	})
	w.SetContinueAsNewSuggested(true)
	return w
}

// fails returns RunTask's answer for a failed process.
func fails(exit spec.Exit) (spec.Exit, error) {
	return exit, nil
}

func (w *world) start(t *testing.T, s spec.RunSpec, from *workflows.Resumption) error {
	s.Tasks = []spec.TaskGroup{{Type: "worker"}}
	execute(t, w.TestWorkflowEnvironment, s, from)
	return w.GetWorkflowError()
}

// next returns a continued run's resumption.
func next(t *testing.T, err error) *workflows.Resumption {
	t.Helper()
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &again)
	var raw converter.RawValue
	var r workflows.Resumption
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &raw, &r))
	return &r
}

var groupSpec = spec.RunSpec{RestartScope: spec.RestartScopeGroup, ReturnOutput: true}

// A limit also applies if it passes while a continued run is being placed.
func TestTimeoutWhileARunThatGoesOnIsPlaced(t *testing.T) {
	w := newWorld(t)
	r := next(t, w.start(t, groupSpec, nil))
	w = newWorld(t)
	s := groupSpec
	s.Timeout = spec.DurationOf(time.Minute)
	r.Started = w.Now().Add(-time.Hour)
	err := w.start(t, s, r)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, spec.ErrSubprocessTimeout, failed.Type(), failed.Message())
}

// adopting is a world with a host that adopts the tasks of earlier executions, which exit only
// when stopped.
type adopting struct {
	*world
	ran      []hostapi.RunTaskInput
	asked    []spec.Group
	released []hostapi.ReleaseInput
	// token belongs to the task that exits only when stopped.
	token []byte
}

// end makes that task's process exit soon, because it was stopped.
func (w *adopting) end(t *testing.T) {
	w.RegisterDelayedCallback(func() {
		require.NoError(t, w.CompleteActivity(w.token, spec.Exit{ExitCode: -15, Cause: spec.CauseCollateral}, nil))
	}, time.Second)
}

var serviceOfA = spec.HostService{Host: "a", Address: "10.0.0.7:4711", Fingerprint: "f", Token: "t"}

func newAdopting(t *testing.T) *adopting {
	w := &adopting{world: newWorld(t)}
	register(w.TestWorkflowEnvironment, activities{
		"Reserve": func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
			w.generations = append(w.generations, in.Generation)
			out := reserved("a", 1)
			out.Service = &serviceOfA
			return out, nil
		},
		"RunTask": func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
			in.Workflow = "" // set only by activities of groups
			w.ran = append(w.ran, in)
			if in.Task == "brief-0" {
				return spec.Exit{Cause: spec.CauseCompleted}, nil
			}
			w.token = activity.GetInfo(ctx).TaskToken
			return spec.Exit{}, activity.ErrResultPending
		},
		"CaptureStacks": func(_ context.Context, in spec.HostRequest[spec.StacksRequest]) (spec.RequestAnswer, error) {
			w.asked = append(w.asked, in.Group)
			w.end(t)
			return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
		},
		"CheckStart": func(_ context.Context, in hostapi.CheckStartInput) (hostapi.None, error) {
			w.asked = append(w.asked, in.Group)
			return hostapi.None{}, nil
		},
		"Release": func(_ context.Context, in hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
			w.released = append(w.released, in)
			return hostapi.ReleaseOutput{}, nil
		},
	})
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
	assert.Equal(t, map[string]string{"worker-0": "a:1"}, r.Addresses)

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

// The hosts are also kept between two generations.
func TestAGroupThatIsLongKeepsItsHosts(t *testing.T) {
	w := newAdopting(t)
	register(w.TestWorkflowEnvironment, activities{"RunTask": func(context.Context) (spec.Exit, error) {
		return fails(spec.Exit{ExitCode: 3, Cause: spec.CauseOrigin})
	}})
	r := next(t, w.start(t, groupSpec, nil))
	assert.Empty(t, w.released)
	assert.Equal(t, 1, r.Machine.Group.Generation)
	assert.False(t, r.Machine.Running)

	again := resumed(t)
	register(again.TestWorkflowEnvironment, activities{"RunTask": succeed["RunTask"]})
	require.NoError(t, again.start(t, groupSpec, r))
	assert.Equal(t, []int{1}, again.generations)
	assert.Equal(t, []hostapi.ReleaseInput{{Run: r.Run}}, again.released)
}

// A run that serves a request does not continue as new. Until it does, it refuses further
// requests, which are repeated later. It accepts requests that end the run.
func TestARunDoesNotGoOnInTheMiddleOfARequest(t *testing.T) {
	for name, ends := range map[string]bool{"signal-task": false, "terminate-all": true} {
		t.Run(name, func(t *testing.T) {
			w := newAdopting(t)
			w.SetContinueAsNewSuggested(false)
			w.SetCurrentHistoryLength(4000)
			var answer spec.RequestAnswer
			register(w.TestWorkflowEnvironment, activities{
				"SignalTasks": func(_ context.Context, in spec.HostRequest[spec.SignalRequest]) (spec.RequestAnswer, error) {
					if ends {
						w.UpdateWorkflowNoRejection(spec.UpdateTerminateAll.Name, "end", t, spec.TerminateAllRequest{})
					}
					time.Sleep(50 * time.Millisecond) // until the update is served
					return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
				},
				"TerminateTasks": func(_ context.Context, in spec.HostRequest[spec.TaskRequest]) (spec.RequestAnswer, error) {
					w.end(t)
					return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
				},
			})
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

// A run whose tasks are stopping together does not continue as new, however long its history is,
// because its grace ends it. The next execution would not know of the stop.
func TestARunThatIsStoppingDoesNotGoOn(t *testing.T) {
	w := newAdopting(t)
	w.SetContinueAsNewSuggested(false)
	w.SetCurrentHistoryLength(4000)
	register(w.TestWorkflowEnvironment, activities{
		"TellStopping": func() (hostapi.None, error) { return hostapi.None{}, nil },
		"SignalTasks": func(_ context.Context, in spec.HostRequest[spec.SignalRequest]) (spec.RequestAnswer, error) {
			return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
		},
	})
	var asked time.Time
	w.RegisterDelayedCallback(func() {
		asked = w.Now()
		w.SetContinueAsNewSuggested(true)
		w.UpdateWorkflowNoRejection(spec.UpdateStopTogether.Name, "stop", t, spec.TogetherRequest{Task: "worker-0", Reason: "enough", Error: &spec.TogetherError{Message: "diverged"}})
	}, time.Second)
	w.RegisterDelayedCallback(func() {
		w.UpdateWorkflowNoRejection(spec.UpdateSignalTask.Name, "signal", t, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"})
	}, time.Minute)
	err := w.start(t, spec.RunSpec{}, nil)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	var r spec.RunResult
	require.NoError(t, failed.Details(&r))
	require.NotNil(t, r.Stopping)
	assert.Equal(t, "enough", r.Stopping.Reason)
	assert.Equal(t, "diverged", r.Stopping.Error.Message)
	assert.Equal(t, []string{"worker-0"}, r.Stragglers)
	assert.InDelta(t, 2, w.Now().Sub(asked).Minutes(), 0.5, "the grace ended it")
	assert.Len(t, w.ran, 1)
}

// If an activity was closed without a report of its process, the host is asked to settle before
// the next generation is placed, in this execution or the next.
func TestNothingIsPlacedBeforeTheLastGenerationIsSettled(t *testing.T) {
	for _, c := range []struct {
		name     string
		accounts bool // the host reports the exit of generation 0's process
		long     bool // the history is long, so that the run continues as new
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
				register(w.TestWorkflowEnvironment, activities{
					"SettleTasks": func(_ context.Context, in hostapi.TasksInput) (spec.RequestAnswer, error) {
						assert.Equal(t, []string{"worker-0"}, in.Tasks)
						note("settle", in.Generation)
						return spec.RequestAnswer{}, nil
					},
					"Reserve": func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
						note("reserve", in.Generation)
						return reserved("a", 1), nil
					},
					"RunTask": func(_ context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
						note("run", in.Generation)
						switch {
						case in.Generation > 0:
							return spec.Exit{Cause: spec.CauseCompleted}, nil
						case c.accounts:
							return fails(spec.Exit{ExitCode: 3, Cause: spec.CauseOrigin})
						}
						return spec.Exit{}, temporal.NewNonRetryableApplicationError("nobody knows", "x", nil)
					},
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

// A run behaves the same with and without groups. The test environment cannot terminate a group
// that has not started; a test in tests/e2e continues a run with groups.
func TestInGroups(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"TimeoutWhileARunThatGoesOnIsPlaced":              TestTimeoutWhileARunThatGoesOnIsPlaced,
		"AGroupThatIsLongKeepsItsHosts":                   TestAGroupThatIsLongKeepsItsHosts,
		"ARunDoesNotGoOnInTheMiddleOfARequest":            TestARunDoesNotGoOnInTheMiddleOfARequest,
		"NothingIsPlacedBeforeTheLastGenerationIsSettled": TestNothingIsPlacedBeforeTheLastGenerationIsSettled,
		"ALargeRunHasFewWitnesses":                        TestALargeRunHasFewWitnesses,
		"StopTogether":                                    TestStopTogether_CO01_CO08,
		"Stragglers":                                      TestStragglers_CO06_SEED61,
		"StopTogetherIsRefused":                           TestStopTogetherIsRefused,
	} {
		t.Run(name, test)
	}
}

// Histories of released versions must replay, because a run may live for months and meet several
// versions of this code. `make record` records a new version's histories.
func TestReplay(t *testing.T) {
	types := map[string]any{
		spec.WorkflowType:        workflows.ClusterRun,
		spec.GroupWorkflowType:   workflows.TaskGroup,
		spec.FleetWorkflowType:   workflows.Fleet,
		spec.BarrierWorkflowType: workflows.Barrier,
		spec.SweepWorkflowType:   workflows.Sweep,
		spec.TrialWorkflowType:   workflows.ClusterRun,
		closure.QueueType:        queue.Workflow,
	}
	files := must.Get(filepath.Glob("testdata/replay/*/*.json"))(t)
	replayed := map[string]bool{}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			f := must.Get(os.Open(file))(t)
			defer f.Close()
			history := must.Get(client.HistoryFromJSON(f, client.HistoryJSONOptions{}))(t)
			begun := history.Events[0].GetWorkflowExecutionStartedEventAttributes()
			name := begun.GetWorkflowType().GetName()
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions(types[name], workflow.RegisterOptions{Name: name})
			require.NoError(t, r.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{
				// A run accepts only its fleet's answers to this execution.
				OriginalExecution: workflow.Execution{ID: begun.GetWorkflowId(), RunID: begun.GetOriginalExecutionRunId()},
			}))
			replayed[name] = true
		})
	}
	for name := range types {
		require.True(t, replayed[name], "there is no history of the workflow type %s", name)
	}
}
