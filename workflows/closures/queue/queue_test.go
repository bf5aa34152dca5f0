package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
)

// queueOf runs the queue of a run that ends after a second.
func queueOf(t *testing.T, in closure.QueueInput) (warnings []string) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(warns(func(text string) { warnings = append(warnings, text) }))
	w := suite.NewTestWorkflowEnvironment()
	w.RegisterWorkflowWithOptions(queue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
	w.RegisterActivityWithOptions(func(closure.CheckInput) (closure.CheckOutput, error) {
		return closure.CheckOutput{}, temporal.NewApplicationError("the run is open", "RunOpen")
	}, activity.RegisterOptions{Name: closure.ActivityClosuresCheck})
	w.RegisterDelayedCallback(func() { w.SignalWorkflow(closure.SignalServing, closure.ServingMessage{Over: "it has ended"}) }, time.Second)
	w.ExecuteWorkflow(closure.QueueType, in, nil)
	assert.NoError(t, w.GetWorkflowError())
	return warnings
}

// SEED-34: a queue without a limit logs a warning.
func TestAQueueWithoutALimitWarns(t *testing.T) {
	for size, want := range map[int]int{0: 0, 2: 0, -1: 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			warnings := queueOf(t, closure.QueueInput{QueueSize: size})
			n := 0
			for _, text := range warnings {
				if text == "the call queue is limited only in bytes, so schedule hardly ever waits" {
					n++
				}
			}
			assert.Equal(t, want, n, warnings)
		})
	}
}

// warns is a logger that passes on warnings.
type warns func(text string)

func (w warns) Debug(string, ...any)       {}
func (w warns) Info(string, ...any)        {}
func (w warns) Warn(text string, _ ...any) { w(text) }
func (w warns) Error(string, ...any)       {}
