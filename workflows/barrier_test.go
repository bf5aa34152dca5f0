package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// barrierTest is a round in the test environment, with a clock that skips time.
type barrierTest struct {
	*testsuite.TestWorkflowEnvironment
	t  *testing.T
	in spec.BarrierInput
	// from is the state from an earlier execution.
	from *workflows.BarrierResumption
}

func newBarrierTest(t *testing.T, participants ...string) *barrierTest {
	var suite testsuite.WorkflowTestSuite
	b := &barrierTest{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	b.in = spec.BarrierInput{Run: spec.RunRef{WorkflowID: "iris", RunID: "e"}, Name: "epoch", Round: 3, Participants: participants}
	b.RegisterActivityWithOptions(func(context.Context, spec.BarrierCheckInput) (spec.BarrierCheckOutput, error) {
		return spec.BarrierCheckOutput{}, nil
	}, activity.RegisterOptions{Name: spec.ActivityBarrierCheck})
	return b
}

func (b *barrierTest) message(host string) spec.BarrierMessage {
	return spec.BarrierMessage{Host: host, Queue: "q/" + host, Digest: spec.ParticipantsDigest(b.in.Participants)}
}

// arrive makes a host's tasks arrive after some time.
func (b *barrierTest) arrive(after time.Duration, host string, timeout time.Duration, tasks ...string) {
	m := b.message(host)
	for _, task := range tasks {
		m.Arrived = append(m.Arrived, spec.BarrierArrival{Task: task, Key: "k-" + task, Timeout: timeout})
	}
	b.RegisterDelayedCallback(func() { b.SignalWorkflow(spec.SignalArrive, m) }, after)
}

func (b *barrierTest) result() spec.BarrierResult {
	b.t.Helper()
	b.ExecuteWorkflow(workflows.Barrier, b.in, b.from)
	require.True(b.t, b.IsWorkflowCompleted())
	var r spec.BarrierResult
	require.NoError(b.t, b.GetWorkflowResult(&r))
	return r
}

// unchanged fails the check with the error for "all can still come".
func unchanged(context.Context, spec.BarrierCheckInput) (spec.BarrierCheckOutput, error) {
	return spec.BarrierCheckOutput{}, temporal.NewApplicationError("all can still come", spec.ErrBarrierUnchanged)
}

func TestBarrierReleasesAll(t *testing.T) {
	b := newBarrierTest(t, "worker-0", "worker-1", "worker-2")
	b.arrive(0, "a", 0, "worker-0", "worker-1")
	b.arrive(10*time.Millisecond, "b", 0, "worker-2")
	r := b.result()
	require.Equal(t, spec.BarrierReleased, r.State)
	require.Equal(t, map[string][]string{"worker-0": {"k-worker-0"}, "worker-1": {"k-worker-1"}, "worker-2": {"k-worker-2"}}, r.Arrived)
}

func TestBarrierQuery(t *testing.T) {
	b := newBarrierTest(t, "worker-0", "worker-1")
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, mock.Anything).Return(unchanged).Maybe()
	b.arrive(time.Second, "a", time.Minute, "worker-0")
	b.RegisterDelayedCallback(func() {
		v := must.Get(b.QueryWorkflow(spec.QueryBarrier))(t)
		var s spec.BarrierStatus
		require.NoError(t, v.Get(&s))
		require.Equal(t, "epoch", s.Name)
		require.Equal(t, 3, s.Round)
		require.Equal(t, "worker-0", s.Waiting[0].Task)
		require.Equal(t, "a", s.Waiting[0].Host)
		require.Equal(t, "worker-1", s.Missing[0].Task)
		require.Equal(t, s.Waiting[0].Since.Add(time.Minute), s.Deadline)
	}, 2*time.Second)
	b.arrive(3*time.Second, "a", 0, "worker-1")
	require.Equal(t, spec.BarrierReleased, b.result().State)
}

// The earliest timeout breaks the round, even if a later arrival set it.
func TestBarrierTimesOut(t *testing.T) {
	b := newBarrierTest(t, "worker-0", "worker-1", "worker-2")
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, mock.Anything).Return(unchanged).Maybe()
	b.arrive(0, "a", time.Hour, "worker-0")
	b.arrive(time.Second, "b", 10*time.Second, "worker-1")
	start := b.Now()
	r := b.result()
	require.Equal(t, spec.BarrierBroken, r.State)
	require.Equal(t, spec.BarrierTimeout, r.Why)
	require.WithinDuration(t, start.Add(11*time.Second), b.Now(), time.Second)
	require.Len(t, r.Missing, 1)
	require.Equal(t, "worker-2", r.Missing[0].Task)
	require.Contains(t, r.Arrived, "worker-1")
}

func TestBarrierBrokenByAnEnd(t *testing.T) {
	b := newBarrierTest(t, "worker-0", "worker-1")
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, spec.BarrierCheckInput{Run: b.in.Run, Missing: []string{"worker-1"}}).
		Return(spec.BarrierCheckOutput{Ended: []spec.BarrierEndedTask{{Task: "worker-1", How: "exit code 3"}}}, nil).Once()
	b.arrive(0, "a", 0, "worker-0")
	r := b.result()
	require.Equal(t, spec.BarrierEnded, r.Why)
	require.Contains(t, r.Message, "worker-1 ended (exit code 3) without arriving")
	b.AssertExpectations(t)
}

func TestBarrierBrokenByTheEndOfTheRun(t *testing.T) {
	b := newBarrierTest(t, "worker-0", "worker-1")
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, mock.Anything).Return(spec.BarrierCheckOutput{RunEnded: "run iris has ended"}, nil)
	b.arrive(0, "a", 0, "worker-0")
	r := b.result()
	require.Equal(t, spec.BarrierRunEnded, r.Why)
}

// Until a missing task ends, the same activity is retried, and the round continues to its
// release.
func TestBarrierChecksGoOn(t *testing.T) {
	b := newBarrierTest(t, "worker-0", "worker-1")
	checks, scheduled := 0, map[string]bool{}
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, in spec.BarrierCheckInput) (spec.BarrierCheckOutput, error) {
			checks++
			scheduled[activity.GetInfo(ctx).ActivityID] = true
			require.Equal(t, []string{"worker-1"}, in.Missing)
			return unchanged(ctx, in)
		})
	b.arrive(0, "a", 0, "worker-0")
	b.arrive(30*time.Second, "b", 0, "worker-1")
	require.Equal(t, spec.BarrierReleased, b.result().State)
	require.Greater(t, checks, 2)
	require.Len(t, scheduled, 1, "attempts cost no events, activities do")
}

// A new check asks about a task that left during a check.
func TestBarrierChecksWhoWentAway(t *testing.T) {
	b := newBarrierTest(t, "worker-0", "worker-1", "worker-2")
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, spec.BarrierCheckInput{Run: b.in.Run, Missing: []string{"worker-2"}}).Return(unchanged)
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, spec.BarrierCheckInput{Run: b.in.Run, Missing: []string{"worker-0", "worker-2"}}).
		Return(spec.BarrierCheckOutput{Ended: []spec.BarrierEndedTask{{Task: "worker-0"}}}, nil)
	b.arrive(0, "a", 0, "worker-0", "worker-1")
	m := b.message("a")
	m.Withdrawn = []spec.BarrierWithdrawal{{Task: "worker-0", Key: "k-worker-0"}}
	b.RegisterDelayedCallback(func() { b.SignalWorkflow(spec.SignalArrive, m) }, 10*time.Second)
	r := b.result()
	require.Equal(t, spec.BarrierEnded, r.Why)
	require.Contains(t, r.Message, "worker-0 ended without arriving")
}

// A cancelled round also answers.
func TestBarrierCancelled(t *testing.T) {
	b := newBarrierTest(t, "worker-0", "worker-1")
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, mock.Anything).Return(unchanged).Maybe()
	b.arrive(0, "a", 0, "worker-0")
	b.RegisterDelayedCallback(b.CancelWorkflow, time.Minute)
	r := b.result()
	require.Equal(t, spec.BarrierCancelled, r.Why)
	require.Contains(t, r.Arrived, "worker-0")
}

// A round with a long history continues in another execution of its workflow, with its
// arrivals, their timeouts, and the hosts that can be asked.
func TestBarrierContinuesAsNew(t *testing.T) {
	b := newBarrierTest(t, "worker-0", "worker-1", "worker-2")
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, mock.Anything).Return(unchanged).Maybe()
	b.arrive(0, "a", time.Minute, "worker-0")
	b.RegisterDelayedCallback(func() { b.SetContinueAsNewSuggested(true) }, 10*time.Second)
	b.arrive(20*time.Second, "b", 0, "worker-1")
	start := b.Now()
	b.ExecuteWorkflow(workflows.Barrier, b.in, nil)
	require.True(t, b.IsWorkflowCompleted())
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, b.GetWorkflowError(), &again)
	var in spec.BarrierInput
	var from workflows.BarrierResumption
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &in, &from))
	require.Equal(t, b.in, in)
	require.Equal(t, []workflows.BarrierHost{{Queue: "q/a", Name: "a"}, {Queue: "q/b", Name: "b"}}, from.Hosts)

	next := func() *barrierTest {
		b := newBarrierTest(t, "worker-0", "worker-1", "worker-2")
		b.SetStartTime(start.Add(20 * time.Second))
		b.from = &from
		return b
	}
	// The timeout still counts from the arrival.
	b = next()
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, spec.BarrierCheckInput{Run: b.in.Run, Missing: []string{"worker-2"}}).Return(unchanged)
	r := b.result()
	require.Equal(t, spec.BarrierTimeout, r.Why)
	require.WithinDuration(t, start.Add(time.Minute), b.Now(), 2*time.Second)
	require.Equal(t, map[string][]string{"worker-0": {"k-worker-0"}, "worker-1": {"k-worker-1"}}, r.Arrived)
	b.AssertExpectations(t)

	// The missing task arrives, and all are released.
	b = next()
	b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, mock.Anything).Return(unchanged).Maybe()
	b.arrive(time.Second, "c", 0, "worker-2")
	r = b.result()
	require.Equal(t, spec.BarrierReleased, r.State)
	require.Len(t, r.Arrived, 3)
}
