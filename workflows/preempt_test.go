package workflows_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A run with notice tells its hosts, is stopped at the deadline, gives its room back, and asks
// for room with its age, in this execution or the next. Nothing of that counts.
func TestAPreemptedRunReturnsToTheQueue(t *testing.T) {
	for _, long := range []bool{false, true} {
		var mu sync.Mutex
		var asked []fleet.Asked
		var reserved []hostapi.ReserveInput
		var order []string
		note := func(what string) { order = append(order, what) }
		var told []spec.Stopping
		over := make(chan struct{})
		run := func(long bool, from *workflows.Resumption) (*world, error) {
			w := newWorld(t)
			w.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.TaskQueue})
			w.SetContinueAsNewSuggested(long)
			register := func(name string, f any) {
				w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
			}
			register(hostapi.Name(hostapi.Host.TellStopping), func(_ context.Context, in hostapi.TellStoppingInput) (hostapi.None, error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, in.Stopping)
				return hostapi.None{}, nil
			})
			register(hostapi.Name(hostapi.Host.SettleTasks), func(context.Context, hostapi.TasksInput) (spec.RequestAnswer, error) {
				return spec.RequestAnswer{}, nil
			})
			register(hostapi.Name(hostapi.Host.Unreserve), func(context.Context, spec.Group) (hostapi.None, error) {
				mu.Lock()
				defer mu.Unlock()
				note("unreserve")
				return hostapi.None{}, nil
			})
			w.OnActivity(hostapi.Name(hostapi.Host.Reserve), mock.Anything, mock.Anything).Return(func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
				mu.Lock()
				defer mu.Unlock()
				reserved = append(reserved, in)
				return hostapi.ReserveOutput{Host: "a", Instance: "i", Addresses: []string{"127.0.0.1:1"}}, nil
			})
			w.OnActivity(hostapi.Name(hostapi.Host.RunTask), mock.Anything, mock.Anything).Return(func(_ context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
				if in.Generation == 0 {
					<-over
				}
				return spec.Exit{Restart: in.Generation, Cause: spec.CauseCompleted}, nil
			})
			w.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, spec.SignalFleet, mock.Anything).Return(func(_, _, _, _ string, arg any) error {
				mu.Lock()
				defer mu.Unlock()
				switch m := arg.(fleet.Message); {
				case m.Asked != nil:
					note("ask")
					asked = append(asked, *m.Asked)
					w.RegisterDelayedCallback(func() {
						if m.Asked.Generation > 0 {
							v, err := w.QueryWorkflow(spec.QueryStatus)
							require.NoError(t, err)
							var s spec.Status
							require.NoError(t, v.Get(&s))
							assert.Equal(t, spec.RunPlacing, s.State)
							assert.Equal(t, 1, s.Preemptions)
							assert.False(t, s.PendingSince.IsZero())
							assert.Equal(t, "vip comes first", s.GroupRestarts[0].Reason)
						}
						w.SignalWorkflow(spec.SignalFleet, fleet.Answer{Grant: &fleet.Grant{
							Run: m.Asked.Run, Generation: m.Asked.Generation, Places: []fleet.Place{{Host: "a", Instance: "i", Ranks: []fleet.Ranks{{First: 0, End: 1}}}},
						}})
					}, time.Millisecond)
				case m.Placed != nil && m.Placed.Generation == 0:
					w.RegisterDelayedCallback(func() {
						w.SignalWorkflow(spec.SignalFleet, fleet.Answer{Preempt: &fleet.Preempt{Run: m.Placed.Run, Reason: "vip comes first", Deadline: w.Now().Add(50 * time.Millisecond)}})
					}, time.Millisecond)
				case m.Freed != nil && m.Freed.Host != "":
					note("free " + m.Freed.Host)
				}
				return nil
			})
			err := w.start(t, spec.RunSpec{MaxRunTime: spec.DurationOf(time.Hour), Preemption: spec.Preemption{Max: new(1)}}, from)
			return w, err
		}
		w, err := run(long, nil)
		if long {
			w, err = run(false, next(t, err))
		}
		close(over)
		require.NoError(t, err)
		assert.Equal(t, []string{"ask", "unreserve", "free a", "ask"}, order)
		require.Len(t, asked, 2)
		assert.True(t, asked[1].Since.Equal(asked[0].Since))
		assert.Equal(t, []bool{false, true}, []bool{asked[0].Demand.Firm, asked[1].Demand.Firm})
		assert.Equal(t, []string{"a"}, asked[1].Demand.Prefer)
		require.Len(t, told, 1)
		assert.Equal(t, spec.NoticeFromQueue, told[0].Notice.From)
		require.Len(t, reserved, 2)
		assert.Greater(t, reserved[1].Stopping.Seq, told[0].Seq)
		assert.Nil(t, reserved[1].Stopping.Notice)
		assert.Zero(t, reserved[1].Elapsed, "max_run_time counts from the next start")
		var r spec.RunResult
		require.NoError(t, w.GetWorkflowResult(&r))
		assert.Equal(t, 1, r.Preemptions)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict)
	}
}
