package workflows_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// sweepWorld is a sweep with trials that take a minute, or until they are cancelled.
type sweepWorld struct {
	*testsuite.TestWorkflowEnvironment
	t    *testing.T
	spec sweep.Spec
	// fails holds the values of n that make a trial fail.
	fails map[string]bool

	mu         sync.Mutex
	open, most int
	started    []string // IDs of trials
	specs      []spec.RunSpec
}

func newSweep(t *testing.T, grid string, rules sweep.Rules) *sweepWorld {
	var suite testsuite.WorkflowTestSuite
	g, err := sweep.ProductGrid(grid)
	require.NoError(t, err)
	w := &sweepWorld{
		TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, fails: map[string]bool{},
		spec: sweep.Spec{Run: &spec.RunSpec{Command: []string{"echo", "{n}"}, Tasks: []spec.TaskGroup{{Type: "worker"}}}, Grid: g, Rules: rules, Owner: "me"},
	}
	w.RegisterWorkflowWithOptions(workflows.Sweep, workflow.RegisterOptions{Name: spec.SweepWorkflowType})
	w.RegisterWorkflowWithOptions(w.trial, workflow.RegisterOptions{Name: spec.TrialWorkflowType})
	return w
}

func (w *sweepWorld) trial(ctx workflow.Context, s spec.RunSpec) (*spec.RunResult, error) {
	w.mu.Lock()
	w.open++
	w.most = max(w.most, w.open)
	w.started = append(w.started, workflow.GetInfo(ctx).WorkflowExecution.ID)
	w.specs = append(w.specs, s)
	w.mu.Unlock()
	n, _ := strconv.Atoi(s.Command[1])
	err := workflow.Sleep(ctx, time.Minute+time.Duration(n)*time.Millisecond) // trials end one after another
	w.mu.Lock()
	w.open--
	w.mu.Unlock()
	switch {
	case err != nil:
		return nil, temporal.NewCanceledError(spec.RunResult{Verdict: spec.VerdictCancelled})
	case w.fails[s.Command[1]]:
		return nil, temporal.NewNonRetryableApplicationError("it failed", spec.ErrUnexpectedExit, nil)
	}
	return &spec.RunResult{Verdict: spec.VerdictSucceeded}, nil
}

func (w *sweepWorld) at(after time.Duration, do func()) { w.RegisterDelayedCallback(do, after) }

func (w *sweepWorld) status() *spec.SweepStatus {
	v, err := w.QueryWorkflow(spec.QueryStatus)
	require.NoError(w.t, err)
	var s spec.Status
	require.NoError(w.t, v.Get(&s))
	return s.Sweep
}

// run executes the sweep. It also returns the result of an unsuccessful sweep.
func (w *sweepWorld) run(from *sweep.Resumption) (result spec.RunResult, err error) {
	w.ExecuteWorkflow(spec.SweepWorkflowType, w.spec, from)
	require.True(w.t, w.IsWorkflowCompleted())
	if err = w.GetWorkflowError(); err == nil {
		require.NoError(w.t, w.GetWorkflowResult(&result))
		return result, nil
	}
	var failed *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	if errors.As(err, &cancelled) {
		details := &spec.RunResult{} // the environment does not encode them
		require.NoError(w.t, cancelled.Details(&details))
		return *details, err
	}
	require.ErrorAs(w.t, err, &failed)
	require.NoError(w.t, failed.Details(&result))
	return result, err
}

// Five trials, two at a time, take three minutes.
func TestSweepRunsAtMostSoMany(t *testing.T) {
	w := newSweep(t, "n=0..4", sweep.Rules{AtMost: 2})
	w.spec.Run.Ship.Archive = &spec.Archive{Digest: "1234", Size: 1, Files: 1}
	w.at(90*time.Second, func() {
		s := w.status()
		assert.Equal(t, "2 of 5 trials ended, 2 running", s.Counts())
		assert.Equal(t, []int{2, 3}, s.RunningTrials)
		assert.Equal(t, 60, s.RemainingSeconds)
	})
	began := w.Now()
	r, err := w.run(nil)
	require.NoError(t, err)
	assert.Equal(t, 3*time.Minute, w.Now().Sub(began).Round(time.Second))
	assert.Equal(t, 2, w.most)
	assert.Equal(t, "5s", r.Sweep.States)
	assert.ElementsMatch(t, []string{
		"default-test-workflow-id.0", "default-test-workflow-id.1", "default-test-workflow-id.2", "default-test-workflow-id.3", "default-test-workflow-id.4",
	}, w.started)
	require.Len(t, w.specs, 5)
	for _, s := range w.specs {
		assert.Equal(t, "1234", s.Ship.Archive.Digest)
		require.NotNil(t, s.Ship.Sweep, "they share its directory")
		assert.Equal(t, "default-test-workflow-id", s.Ship.Sweep.ID) // the environment does not report a first execution
	}
}

// A trial on a host queue does not wait for a host forever, unless its spec requires it.
func TestTrialsGiveUpTheirHosts(t *testing.T) {
	for name, c := range map[string]struct {
		queue  string
		change func(*spec.RunSpec)
		after  time.Duration // how long one host keeps its tasks running
	}{
		"one task":      {spec.TaskQueue, func(*spec.RunSpec) {}, 10 * time.Minute},
		"two tasks":     {spec.TaskQueue, func(s *spec.RunSpec) { s.Tasks[0].Count = new(2) }, 2 * time.Minute},
		"it is kept":    {spec.TaskQueue, func(s *spec.RunSpec) { s.OnDisconnect = spec.OnDisconnectKeep }, 0},
		"its only host": {spec.PrivateQueue("x"), func(*spec.RunSpec) {}, 0},
	} {
		w := newSweep(t, "n=0..1", sweep.Rules{AtMost: 2})
		w.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: c.queue})
		c.change(w.spec.Run)
		_, err := w.run(nil)
		require.NoError(t, err, name)
		require.Len(t, w.specs, 2)
		require.NoError(t, w.specs[1].Validate(), name)
		assert.Equal(t, c.after, w.specs[1].WithDefaults().StopAfter(1), name)
	}
}

// Running trials are cancelled, and nothing starts.
func TestSweepIsCancelled(t *testing.T) {
	w := newSweep(t, "n=0..9", sweep.Rules{AtMost: 3})
	w.at(70*time.Second, w.CancelWorkflow)
	r, err := w.run(nil)
	require.Error(t, err)
	assert.Equal(t, spec.VerdictCancelled, r.Verdict)
	assert.Equal(t, "3s3c4k", r.Sweep.States)
	assert.Len(t, w.started, 6)
}

func TestTrialsAreStoppedAndRetried(t *testing.T) {
	w := newSweep(t, "n=0..11", sweep.Rules{AtMost: 4})
	w.fails = map[string]bool{"0": true}
	w.at(10*time.Second, func() { w.SignalWorkflow(spec.SignalStopTrials, "1*") })
	w.at(70*time.Second, func() {
		assert.Equal(t, "4 of 12 trials ended, 4 running, 1 cancelled, 2 skipped, 1 failed (0)", w.status().Counts())
		w.fails = nil
		w.SignalWorkflow(spec.SignalRetryTrials, nil)
	})
	r, err := w.run(nil)
	require.NoError(t, err)
	assert.Equal(t, "12s", r.Sweep.States)
}

// A sweep continues as new while trials run. The next execution finds their end by a check, keeps
// the limit, and cancels them if it is cancelled.
func TestSweepContinuesAsNew(t *testing.T) {
	w := newSweep(t, "n=0..5", sweep.Rules{AtMost: 2})
	w.at(90*time.Second, func() { w.SetContinueAsNewSuggested(true) })
	w.ExecuteWorkflow(spec.SweepWorkflowType, w.spec, nil)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	var of sweep.Spec
	var from sweep.Resumption
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &of, &from))
	assert.Equal(t, "3s2r1p", from.Machine.States)
	require.Len(t, from.Open, 1)
	assert.NotEmpty(t, from.Open[0].RunID)
	assert.Equal(t, []int{4}, from.Held, "the next execution starts it")
	from.Held = nil

	second := newSweep(t, "n=0..5", sweep.Rules{AtMost: 2})
	from.Machine.States = "3s2r1p" // as if trial 3 still ran, and 5 waited
	from.Open = []sweep.Open{{Trial: 3, RunID: "a"}, {Trial: 4, RunID: "b"}}
	looks := 0
	second.RegisterActivityWithOptions(func(_ context.Context, in sweep.CheckInput) (out sweep.CheckOutput, _ error) {
		looks++
		switch {
		case looks < 3:
			return out, temporal.NewApplicationError("all of them are still running", "Unchanged")
		case len(in.Trials) == 2:
			assert.Empty(t, second.started)
			return sweep.CheckOutput{Ended: []sweep.EndedTrial{{Trial: 4, State: "failed"}}}, nil
		}
		assert.Equal(t, []sweep.Open{{Trial: 3, RunID: "a"}}, in.Trials)
		return sweep.CheckOutput{Ended: []sweep.EndedTrial{{Trial: 3, State: "succeeded"}}}, nil
	}, activity.RegisterOptions{Name: spec.ActivityTrialsCheck})
	r, err := second.run(&from)
	require.Error(t, err)
	assert.Equal(t, "4s1f1s", r.Sweep.States)
	assert.Equal(t, []string{"default-test-workflow-id.5"}, second.started)
}

// Trials that an execution has held back are started by the next one, or end if they were stopped.
func TestSweepStartsHeldTrials(t *testing.T) {
	w := newSweep(t, "n=0..2", sweep.Rules{AtMost: 2})
	r, err := w.run(&sweep.Resumption{Machine: sweep.Snapshot{States: "1s2r"}, Held: []int{1, 2}})
	require.NoError(t, err)
	assert.Equal(t, "3s", r.Sweep.States)
	assert.ElementsMatch(t, []string{"default-test-workflow-id.1", "default-test-workflow-id.2"}, w.started)
}

// A sweep waits for earlier runs itself, so that no trials are open during that time. If one does
// not end as required, the sweep is skipped without failed trials.
func TestSweepAfterAnotherRun(t *testing.T) {
	for end, want := range map[spec.RunEnd]spec.Verdict{spec.EndedWell: spec.VerdictSucceeded, spec.EndedBadly: spec.VerdictSkipped} {
		w := newSweep(t, "n=0..2", sweep.Rules{AtMost: 2})
		w.spec.Run.After = []spec.After{{Run: "earlier"}}
		w.RegisterActivityWithOptions(func(context.Context, spec.RunEndInput) (spec.RunEndOutput, error) {
			panic("mocked")
		}, activity.RegisterOptions{Name: spec.ActivityRunEnd})
		w.OnActivity(spec.ActivityRunEnd, mock.Anything, mock.Anything).After(time.Hour).Return(spec.RunEndOutput{Execution: "x", End: end}, nil)
		w.at(time.Minute, func() {
			s := w.status()
			assert.Equal(t, []int{3, 0, 0}, []int{s.Pending, s.Running, len(w.started)})
		})
		r, err := w.run(nil)
		assert.Equal(t, want, r.Verdict)
		if end == spec.EndedWell {
			require.NoError(t, err)
			assert.Len(t, w.started, 3)
			continue
		}
		assert.Equal(t, "run earlier did not succeed", r.Message)
		assert.Equal(t, []int{3, 0, 0}, []int{r.Sweep.Skipped, r.Sweep.Failed, len(w.started)})
	}
}

func TestSweepRefusesABadGrid(t *testing.T) {
	w := newSweep(t, "n=0..5", sweep.Rules{AtMost: 2})
	w.spec.Grid = sweep.Grid{Product: "n="}
	w.ExecuteWorkflow(spec.SweepWorkflowType, w.spec, nil)
	assert.ErrorContains(t, w.GetWorkflowError(), "parameter n: a value is missing")
}
