package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// A sweep of short trials starts them in batches, also after it has continued as new: an activity
// finds the ends of the batch that an earlier execution started, and a trial that did not get its
// turn there is started again.
func TestSweepContinuesAsNewWithBatches(t *testing.T) {
	rules := sweep.Rules{AtMost: 1, Batch: 4}
	state := sweep.Snapshot{States: "20p", Took: 100 * time.Millisecond, Timed: 10}
	first := newSweep(t, "n=0..19", rules)
	first.at(30*time.Second, func() { first.SetContinueAsNewSuggested(true) })
	first.ExecuteWorkflow(spec.SweepWorkflowType, first.spec, &sweep.Resumption{Machine: state})
	assert.Equal(t, []string{"default-test-workflow-id.0-3"}, first.started)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, first.GetWorkflowError(), &next)
	var of sweep.Spec
	var from sweep.Resumption
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &of, &from))
	assert.Equal(t, 4, of.Rules.Batch)

	second := newSweep(t, "n=0..3", rules)
	second.RegisterActivityWithOptions(func(_ context.Context, in sweep.CheckInput) (sweep.CheckOutput, error) {
		assert.Equal(t, []sweep.Open{{Trial: 0, RunID: "a", Count: 3}}, in.Trials)
		return sweep.CheckOutput{Ended: []sweep.EndedTrial{{Trial: 0, States: "1s1f1p"}}}, nil
	}, activity.RegisterOptions{Name: spec.ActivityTrialsCheck})
	r, err := second.run(&sweep.Resumption{
		Machine: sweep.Snapshot{States: "1r2w1p", Started: map[int]time.Time{0: second.Now()}, Batches: map[int]int{0: 3}},
		Open:    []sweep.Open{{Trial: 0, RunID: "a", Count: 3}},
	})
	require.Error(t, err)
	assert.Equal(t, "1s1f2s", r.Sweep.States)
	assert.Equal(t, []string{"default-test-workflow-id.2", "default-test-workflow-id.3"}, second.started)
}
