package queue_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
)

// longQueue is the workflow of a queue whose history becomes long after a minute.
type longQueue struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T
}

func newLongQueue(t *testing.T) *longQueue {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(warns(func(string) {}))
	q := &longQueue{suite.NewTestWorkflowEnvironment(), t}
	q.SetTestTimeout(2 * time.Minute)
	q.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // host workers have 15 s, of a machine that is less busy
	q.RegisterWorkflowWithOptions(queue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
	q.RegisterActivityWithOptions(func(closure.CheckInput) (closure.CheckOutput, error) {
		return closure.CheckOutput{}, temporal.NewApplicationError("the run is open", "RunOpen")
	}, activity.RegisterOptions{Name: closure.ActivityClosuresCheck})
	return q
}

// at calls do at a time of the workflow.
func (q *longQueue) at(after time.Duration, do func()) { q.RegisterDelayedCallback(do, after) }

// answered is the answer to an update.
type answered struct {
	*testing.T
	done  bool
	value any
}

func (a *answered) Accept()          {}
func (a *answered) Reject(err error) { assert.NoError(a, err) }
func (a *answered) Complete(v any, err error) {
	assert.NoError(a, err)
	a.done, a.value = true, v
}

func (q *longQueue) ask(name string, request any) *answered {
	a := &answered{T: q.t}
	q.UpdateWorkflow(name, fmt.Sprint(name, rand.Int()), a, request)
	return a
}

// carried returns the state that the execution has passed to the next.
func (q *longQueue) carried() (payloads []*commonpb.Payload, executions []closure.QueueExecution, next *rules.Queue) {
	q.t.Helper()
	var again *workflow.ContinueAsNewError
	require.ErrorAs(q.t, q.GetWorkflowError(), &again)
	var in closure.QueueInput
	var packed []byte
	require.NoError(q.t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &in, &packed))
	r := must.Get(queue.Unpack(packed))(q.t)
	return again.Input.Payloads, r.Executions, rules.Restore(rules.ConfigOf(in), r.Queue)
}

// A queue that is too large for a server to continue keeps its state, and takes no closures
// until enough have ended: a server would end it.
func TestAQueueThatIsTooLargeStays(t *testing.T) {
	const batches = 140
	q := newLongQueue(t)
	q.SetCurrentHistoryLength(100)
	random := rand.New(rand.NewPCG(1, 2))
	q.at(0, func() {
		for i := range uint64(100) {
			q.ask(closure.UpdateCreateResource, closure.ResourceRequest{Client: "c", Number: i + 1, Resource: closure.Resource{Function: "r"}})
		}
	})
	for batch := range uint64(batches) {
		q.at(time.Second, func() {
			r := closure.ScheduleRequest{Client: "c", Batch: batch + 1}
			for range closure.MaxBatch {
				c := closure.Closure{Function: "f"}
				for range 12 {
					c.Resources = append(c.Resources, 1+random.Uint64N(100))
				}
				r.Closures = append(r.Closures, c)
			}
			q.ask(closure.UpdateSchedule, r)
		})
	}
	one := closure.ScheduleRequest{Client: "d", Batch: 1, Closures: []closure.Closure{{Function: "g"}}}
	var late, done *answered
	q.at(time.Minute, func() {
		q.SetContinueAsNewSuggested(true)
		q.ask(closure.UpdateCancelClosures, closure.CancelRequest{Closures: []uint64{1 << 40}})
	})
	q.at(2*time.Minute, func() { late = q.ask(closure.UpdateSchedule, one) })
	q.at(3*time.Minute, func() {
		assert.False(t, late.done, "there is no room")
		done = q.ask(closure.UpdateDone, closure.WaitRequest{Client: "e", Call: 1})
		var ids []uint64
		for id := uint64(1); id <= batches*closure.MaxBatch/2; id++ {
			ids = append(ids, id)
		}
		q.ask(closure.UpdateCancelClosures, closure.CancelRequest{Closures: ids})
	})
	q.ExecuteWorkflow(closure.QueueType, closure.QueueInput{}, nil)
	assert.True(t, done.done, "it answers meanwhile")
	payloads, _, next := q.carried()
	size := 0
	for _, p := range payloads {
		size += len(p.GetData())
	}
	assert.Less(t, size, 1900<<10)
	assert.Greater(t, size, 900<<10, "the test is of a large queue")
	c := next.Status().Counts
	assert.Equal(t, batches*closure.MaxBatch/2, c.Queued)
	assert.Equal(t, uint64(batches*closure.MaxBatch/2), c.Cancelled)
	// It takes closures as before, and waiting clients ask again.
	assert.True(t, next.Schedule(one).Ready())
}

// The list of executions is bounded, and small.
func TestExecutionsAreBounded(t *testing.T) {
	var earlier []closure.QueueExecution
	for i := range uint64(5000) {
		earlier = append(earlier, closure.QueueExecution{RunID: fmt.Sprintf("01a1ffcc-%04x-%04x-%04x-%012x", i, rand.Uint32()>>16, rand.Uint32()>>16, rand.Uint64()>>16), First: 1000 * i, Last: 1000*i + 1999})
	}
	run := func(before []closure.QueueExecution) []closure.QueueExecution {
		empty := must.Get(rules.New(rules.Config{}).Snapshot())(t)
		packed := must.Get(queue.Pack(queue.Resumption{Executions: before, Queue: empty}))(t)
		q := newLongQueue(t)
		q.SetContinueAsNewSuggested(true)
		q.ExecuteWorkflow(closure.QueueType, closure.QueueInput{}, packed)
		payloads, executions, _ := q.carried()
		assert.Less(t, len(payloads[1].GetData()), 64<<10, "with a queue that is empty")
		require.Len(t, executions, 1000)
		return executions
	}
	first := run(earlier)
	assert.Equal(t, earlier[4001:], first[:999])
	second := run(first)
	assert.Equal(t, first[1:], second[:999])
}
