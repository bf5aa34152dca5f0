package workflows_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

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
	w.OnActivity(hostapi.Name(hostapi.Host.RunTask), mock.Anything, mock.Anything).Return(func(context.Context, hostapi.RunTaskInput) (spec.Exit, error) {
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

// A run is skipped as soon as one of the earlier runs has not ended as the spec requires.
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
		"default-test-workflow-id": "after[0].run: is the ID of this run",
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
