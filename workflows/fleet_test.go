package workflows_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// fleetWorld is a fleet with hosts that hold their leases until a test ends them.
type fleetWorld struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T

	mu sync.Mutex
	// ends maps hosts to channels that end their lease with an error or nil.
	ends map[string]chan error
	// told holds the answers to runs, by workflow ID.
	told map[string][]fleet.Answer
	// full holds the runs that do not get further signals, by workflow ID.
	full map[string]bool
}

func newFleet(t *testing.T) *fleetWorld {
	var suite testsuite.WorkflowTestSuite
	w := &fleetWorld{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, ends: map[string]chan error{}, told: map[string][]fleet.Answer{}, full: map[string]bool{}}
	w.SetTestTimeout(time.Minute)
	w.RegisterWorkflowWithOptions(workflows.Fleet, workflow.RegisterOptions{Name: spec.FleetWorkflowType})
	w.RegisterActivityWithOptions(func(ctx context.Context, in fleet.HostLeaseInput) error {
		assert.Equal(w.t, 5*time.Second, in.Beat)
		assert.Equal(w.t, 15*time.Second, activity.GetInfo(ctx).HeartbeatTimeout)
		select {
		case err := <-w.endOf(in.Host):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, activity.RegisterOptions{Name: spec.ActivityHostLease})
	w.RegisterActivityWithOptions(func(context.Context, fleet.CheckInput) (fleet.CheckOutput, error) {
		return fleet.CheckOutput{}, temporal.NewApplicationError("all of them still wait", "Unchanged")
	}, activity.RegisterOptions{Name: spec.ActivityFleetCheck})
	w.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, spec.SignalFleet, mock.Anything).Return(
		func(_, workflowID, _, _ string, arg any) error {
			if workflowID == "gone" {
				return &temporal.UnknownExternalWorkflowExecutionError{}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.full[workflowID] {
				return errors.New("SIGNAL_COUNT_LIMIT_EXCEEDED")
			}
			w.told[workflowID] = append(w.told[workflowID], arg.(fleet.Answer))
			return nil
		})
	return w
}

func (w *fleetWorld) endOf(host string) chan error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends[host] == nil {
		w.ends[host] = make(chan error, 1)
	}
	return w.ends[host]
}

func (w *fleetWorld) grants(run string) []fleet.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told[run]
}

func (w *fleetWorld) at(after time.Duration, do func()) { w.RegisterDelayedCallback(do, after) }

// join adds a host after some time. refused is the expected error, if any.
func (w *fleetWorld) join(after time.Duration, name, instance string, slots int, refused string) {
	w.at(after, func() {
		w.UpdateWorkflow(spec.UpdateJoin, "", &testsuite.TestUpdateCallback{
			OnAccept: func() { assert.Empty(w.t, refused, "%s joined", name) },
			OnReject: func(err error) {
				if refused == "" {
					assert.NoError(w.t, err)
					return
				}
				assert.ErrorContains(w.t, err, refused)
			},
			OnComplete: func(_ any, err error) { assert.NoError(w.t, err) },
		}, fleet.Joined{Host: fleet.Host{Name: name, Instance: instance, Slots: slots}})
	})
}

func (w *fleetWorld) ask(after time.Duration, run string, tasks int) {
	w.at(after, func() {
		w.SignalWorkflow(spec.SignalFleet, fleet.Message{Asked: &fleet.Asked{
			Run: fleet.Run{WorkflowID: run, RunID: "r"}, Demand: fleet.Demand{Groups: []fleet.Group{{Tasks: tasks}}},
		}})
	})
}

func (w *fleetWorld) hosts() map[string]fleet.HostState {
	v := must.Get(w.QueryWorkflow(spec.QueryHosts))(w.t)
	var hosts []fleet.HostStatus
	require.NoError(w.t, v.Get(&hosts))
	states := map[string]fleet.HostState{}
	for _, h := range hosts {
		states[h.Name] = h.State
	}
	return states
}

// run executes the fleet until it is cancelled, or continues as new.
func (w *fleetWorld) run(from *fleet.State) error {
	w.ExecuteWorkflow(spec.FleetWorkflowType, from)
	require.True(w.t, w.IsWorkflowCompleted())
	return w.GetWorkflowError()
}

// A host is in the fleet as long as its lease lasts. A lease that fails leaves it silent, and a
// lease that ends without an error removes it. A second living host worker with its name is
// refused.
func TestAFleetKnowsWhoIsThere(t *testing.T) {
	w := newFleet(t)
	w.join(time.Second, "a", "i1", 4, "")
	w.join(2*time.Second, "b", "i1", 4, "")
	w.join(3*time.Second, "a", "i2", 4, "another host worker already serves this queue as host a")
	w.at(4*time.Second, func() {
		assert.Equal(t, map[string]fleet.HostState{"a": fleet.HostReady, "b": fleet.HostReady}, w.hosts())
		w.endOf("a") <- temporal.NewNonRetryableApplicationError("its beats are missing", "x", nil)
		w.endOf("b") <- nil
	})
	w.at(5*time.Second, func() {
		assert.Equal(t, map[string]fleet.HostState{"a": fleet.HostSilent}, w.hosts())
	})
	w.join(6*time.Second, "a", "i2", 4, "")
	w.at(7*time.Second, func() {
		assert.Equal(t, map[string]fleet.HostState{"a": fleet.HostReady}, w.hosts())
		w.CancelWorkflow()
	})
	assert.True(t, temporal.IsCanceledError(w.run(nil)))
}

// A run that cannot get a signal now keeps its grant, and is told later.
func TestAGrantWaitsForItsRun(t *testing.T) {
	t.Parallel()
	w := newFleet(t)
	w.full["first"] = true
	w.join(time.Second, "a", "i1", 4, "")
	w.ask(2*time.Second, "first", 4)
	w.ask(3*time.Second, "second", 4)
	w.at(4*time.Second, func() {
		assert.Empty(t, w.grants("second"), "the slots are those of the first")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.full = nil
	})
	w.at(8*time.Second, func() {
		require.Len(t, w.grants("first"), 1)
		assert.NotNil(t, w.grants("first")[0].Grant)
		assert.Empty(t, w.grants("second"))
		w.CancelWorkflow()
	})
	assert.True(t, temporal.IsCanceledError(w.run(nil)))
}

// A fleet that continues as new keeps its state: its hosts get leases from the next execution,
// which grants hosts to the waiting runs. The grant of a run that no longer exists is freed.
func TestAFleetContinuesAsNew(t *testing.T) {
	w := newFleet(t)
	w.join(time.Second, "a", "i1", 4, "")
	w.ask(2*time.Second, "gone", 4)
	w.ask(3*time.Second, "first", 4)
	w.ask(4*time.Second, "second", 4)
	w.at(5*time.Second, func() {
		assert.Empty(t, w.grants("gone"))
		require.Len(t, w.grants("first"), 1)
		assert.Equal(t, []fleet.Place{{Host: "a", Instance: "i1", Ranks: []fleet.Ranks{{First: 0, End: 4}}}}, w.grants("first")[0].Grant.Places)
		assert.Empty(t, w.grants("second"))
		w.SetContinueAsNewSuggested(true)
		w.SignalWorkflow(spec.SignalFleet, fleet.Message{Placed: &fleet.Placed{Run: fleet.Run{WorkflowID: "first", RunID: "r"}}})
	})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, w.run(nil), &again)
	var from *fleet.State
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &from))

	w = newFleet(t)
	w.at(time.Second, func() {
		assert.Equal(t, map[string]fleet.HostState{"a": fleet.HostReady}, w.hosts())
		assert.Empty(t, w.grants("second"))
		w.SignalWorkflow(spec.SignalFleet, fleet.Message{Freed: &fleet.Freed{Run: fleet.Run{WorkflowID: "first", RunID: "r"}}})
	})
	w.at(2*time.Second, func() {
		assert.Len(t, w.grants("second"), 1)
		w.endOf("a") <- temporal.NewNonRetryableApplicationError("its beats are missing", "x", nil)
	})
	w.at(3*time.Second, func() {
		assert.Equal(t, map[string]fleet.HostState{"a": fleet.HostSilent}, w.hosts())
		w.CancelWorkflow()
	})
	assert.True(t, temporal.IsCanceledError(w.run(from)))
}
