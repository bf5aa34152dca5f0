package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// meetingPlace is a server, and hosts that claim to be part of a run.
type meetingPlace struct {
	*harness.Server
	t      *testing.T
	queue  string
	run    spec.RunRef
	tasks  []string
	hosts  []*harness.BarrierHost
	states []string
}

// newMeetingPlace starts as many hosts, with one task each.
func newMeetingPlace(t *testing.T, hosts int) *meetingPlace {
	t.Helper()
	return meetingPlaceOn(t, harness.StartServer(t, "--headless"), hosts)
}

func meetingPlaceOn(t *testing.T, s *harness.Server, hosts int) *meetingPlace {
	t.Helper()
	p := &meetingPlace{Server: s, t: t, queue: "barriers"}
	// A run without a worker for its workflow is open, and its tasks are unknown.
	run := must.Get(p.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "nobody", TaskQueue: "nobody"}, spec.WorkflowType))(t)
	p.run = spec.RunRef{WorkflowID: run.GetID(), RunID: run.GetRunID()}
	p.BarrierWorker(t, p.queue)
	for i := range hosts {
		p.tasks = append(p.tasks, fmt.Sprint("worker-", i))
		p.states = append(p.states, t.TempDir())
		p.hosts = append(p.hosts, nil)
		p.restart(i)
	}
	return p
}

func (p *meetingPlace) restart(i int) {
	p.hosts[i] = p.StartBarrierHost(p.t, p.queue, fmt.Sprint("host-", i), p.states[i])
}

func (p *meetingPlace) arrival(i int, name, key string) barriers.Arrival {
	return barriers.Arrival{
		Run: p.run, Task: p.tasks[i], Name: name, Key: key,
		Participants: p.tasks, Here: []string{p.tasks[i]},
	}
}

type arrived struct {
	barriers.Release
	err error
}

// arrive arrives in the background.
func (p *meetingPlace) arrive(ctx context.Context, a barriers.Arrival) chan arrived {
	done := make(chan arrived, 1)
	for i, task := range p.tasks {
		if task == a.Task {
			h := p.hosts[i]
			go func() {
				r, err := h.Arrive(ctx, a)
				done <- arrived{r, err}
			}()
		}
	}
	return done
}

func (p *meetingPlace) await(done chan arrived) arrived {
	p.t.Helper()
	select {
	case a := <-done:
		return a
	case <-time.After(time.Minute):
		p.t.Fatal("no answer")
		return arrived{}
	}
}

func (p *meetingPlace) released(done chan arrived, round int) {
	p.t.Helper()
	a := p.await(done)
	require.NoError(p.t, a.err)
	require.Equal(p.t, round, a.Round)
}

// status asks an open round.
func (p *meetingPlace) status(name string, round int) (spec.BarrierStatus, error) {
	var status spec.BarrierStatus
	v, err := p.Client().QueryWorkflow(context.Background(), spec.BarrierID(p.run, name, round), "", spec.QueryBarrier)
	if err == nil {
		err = v.Get(&status)
	}
	return status, err
}

// awaitWaiting waits until n participants wait in the round.
func (p *meetingPlace) awaitWaiting(name string, round, n int) {
	p.t.Helper()
	harness.Eventually(p.t, fmt.Sprintf("%d wait in round %d", n, round), func() bool {
		s, err := p.status(name, round)
		return err == nil && len(s.Waiting) == n
	})
}

// of returns a part of the meeting place: the first hosts and their tasks.
func (p *meetingPlace) of(t *testing.T, hosts int) *meetingPlace {
	q := *p
	q.t, q.tasks = t, p.tasks[:hosts]
	return &q
}

func TestBarriers(t *testing.T) {
	t.Parallel()
	all := newMeetingPlace(t, 10)
	for _, hosts := range []int{1, 2, 10} {
		t.Run(fmt.Sprint(hosts, " hosts"), func(t *testing.T) { all.of(t, hosts).meet(fmt.Sprint("of-", hosts)) })
	}
	t.Run("errors", func(t *testing.T) { all.of(t, 3).differ() })
	t.Run("terminated", func(t *testing.T) { all.of(t, 2).terminated() })
}

// meet checks that a barrier holds every participant until all have arrived, again and again.
func (p *meetingPlace) meet(name string) {
	t, hosts := p.t, len(p.tasks)
	for round := range 5 {
		var waits []chan arrived
		for i := range hosts - 1 {
			waits = append(waits, p.arrive(t.Context(), p.arrival(i, name, fmt.Sprint(i, "-", round))))
		}
		if hosts > 1 {
			p.awaitWaiting(name, round, hosts-1)
			for _, w := range waits {
				require.Empty(t, w, "released before all have arrived")
			}
		}
		waits = append(waits, p.arrive(t.Context(), p.arrival(hosts-1, name, fmt.Sprint("last-", round))))
		for _, w := range waits {
			p.released(w, round)
		}
	}
}

// hostGoesAway lets two tasks pass the earlier rounds, and ends the host of the first while it
// waits in this round.
func (p *meetingPlace) hostGoesAway(round int) {
	p.t.Helper()
	ctx := p.t.Context()
	for before := range round {
		a := p.arrive(ctx, p.arrival(0, "epoch", fmt.Sprint("a", before)))
		b := p.arrive(ctx, p.arrival(1, "epoch", fmt.Sprint("b", before)))
		p.released(a, before)
		p.released(b, before)
	}
	first := p.arrive(ctx, p.arrival(0, "epoch", fmt.Sprint("a", round)))
	p.awaitWaiting("epoch", round, 1)
	p.hosts[0].Close()
	require.ErrorIs(p.t, p.await(first).err, barriers.ErrShutdown)
}

// If a round was released while a host was away, the same arrival is answered with this release
// instead of another round, with and without the host's memory of it.
func TestBarrierReleasedWhileTheHostWasAway(t *testing.T) {
	takesLong(t)
	t.Parallel()
	for _, remembers := range []bool{true, false} {
		t.Run(fmt.Sprint(remembers), func(t *testing.T) {
			p := newMeetingPlace(t, 2)
			p.hostGoesAway(5)
			second := p.arrive(t.Context(), p.arrival(1, "epoch", "b5"))
			p.released(second, 5)
			// The others are in the next round already.
			ahead := p.arrive(t.Context(), p.arrival(1, "epoch", "b6"))
			p.awaitWaiting("epoch", 6, 1)
			if !remembers {
				require.NoError(t, os.RemoveAll(filepath.Join(p.states[0], "barriers")))
			}
			p.restart(0)
			p.released(p.arrive(t.Context(), p.arrival(0, "epoch", "a5")), 5)
			p.released(p.arrive(t.Context(), p.arrival(0, "epoch", "a6")), 6)
			p.released(ahead, 6)
			// And once more, while the host is there.
			p.released(p.arrive(t.Context(), p.arrival(0, "epoch", "a6")), 6)
		})
	}
}

// A task that brings other participants under the same name gets the difference as an error,
// and the others are not disturbed. A timeout breaks the barrier for all and names the missing
// tasks. After it there is another round.
func (p *meetingPlace) differ() {
	t := p.t
	first := p.arrive(t.Context(), p.arrival(0, "epoch", "a"))
	p.awaitWaiting("epoch", 0, 1)
	a := p.arrival(1, "epoch", "b")
	a.Participants = []string{"worker-1", "worker-0"}
	var other *barriers.Error
	err := p.await(p.arrive(t.Context(), a)).err
	require.ErrorAs(t, err, &other)
	require.ErrorContains(t, err, "only there: worker-2")

	a = p.arrival(1, "epoch", "c")
	a.Timeout = time.Second
	for _, w := range []chan arrived{p.arrive(t.Context(), a), first} {
		var timeout *barriers.Error
		err := p.await(w).err
		require.ErrorAs(t, err, &timeout)
		require.Equal(t, wire.CodeBarrierTimeout, timeout.Code)
		require.ErrorContains(t, err, "barrier epoch (round 1) is broken: not all participants arrived within 1s, the timeout of worker-1; missing: worker-2 (since ")
		require.Len(t, timeout.Missing, 1)
	}

	var waits []chan arrived
	for i := range p.tasks {
		waits = append(waits, p.arrive(t.Context(), p.arrival(i, "epoch", fmt.Sprint("again-", i))))
	}
	for _, w := range waits {
		p.released(w, 1)
	}
}

// A round that is terminated leaves no task waiting.
func (p *meetingPlace) terminated() {
	t := p.t
	first := p.arrive(t.Context(), p.arrival(0, "terminated", "a"))
	p.awaitWaiting("terminated", 0, 1)
	require.NoError(t, p.Client().TerminateWorkflow(t.Context(), spec.BarrierID(p.run, "terminated", 0), "", "test"))
	var broken *barriers.Error
	require.ErrorAs(t, p.await(first).err, &broken)
	next := p.arrive(t.Context(), p.arrival(0, "terminated", "a2"))
	second := p.arrive(t.Context(), p.arrival(1, "terminated", "b"))
	p.released(next, 1)
	p.released(second, 1)
}

// Barriers of a real run.
func TestBarriersOfARun(t *testing.T) {
	t.Parallel()
	p := newMeetingPlace(t, 1)
	p.StartWorker(t)
	p.participantEnds(t)
	p.areListed(t)
}

// A missing participant that has ended and does not come back breaks the barrier,
// and so does the end of the run.
func (p *meetingPlace) participantEnds(t *testing.T) {
	end := filepath.Join(t.TempDir(), "end")
	run, err := p.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "run-b", TaskQueue: spec.TaskQueue}, spec.WorkflowType,
		&spec.RunSpec{OnFailure: spec.OnFailureContinue, Tasks: []spec.TaskGroup{
			harness.Shell("worker", 2, fmt.Sprintf("if [ $CLUSTERRUN_TASK = worker-1 ]; then while [ ! -e %s ]; do nap; done; exit 3; fi; exec sleep 300", end)),
		}})
	require.NoError(t, err)
	p.run = spec.RunRef{WorkflowID: run.GetID(), RunID: run.GetRunID()}
	p.tasks = []string{"worker-0", "worker-1"}
	first := p.arrive(t.Context(), p.arrival(0, "epoch", "a"))
	p.awaitWaiting("epoch", 0, 1)
	// The check has run while all processes live.
	harness.Eventually(t, "it was looked in vain", func() bool {
		d, err := p.Client().DescribeWorkflowExecution(t.Context(), spec.BarrierID(p.run, "epoch", 0), "")
		if err != nil || len(d.GetPendingActivities()) != 1 || d.GetPendingActivities()[0].GetLastHeartbeatTime() == nil {
			return false
		}
		failure := d.GetPendingActivities()[0].GetLastFailure() // a busy machine may be late
		assert.NotEqual(t, spec.ErrBarrierUnchanged, failure.GetApplicationFailureInfo().GetType(), "and looks like no failure")
		return true
	})
	require.Empty(t, first)
	d := must.Get(p.Client().DescribeWorkflowExecution(t.Context(), spec.BarrierID(p.run, "epoch", 0), ""))(t)
	require.LessOrEqual(t, d.GetWorkflowExecutionInfo().GetHistoryLength(), int64(30), "however long it lasts, it costs no history")
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	var broken *barriers.Error
	err = p.await(first).err
	require.ErrorAs(t, err, &broken)
	require.Equal(t, wire.CodeBarrierBroken, broken.Code)
	require.ErrorContains(t, err, "worker-1 ended (exit code 3) without arriving; missing: worker-1 (since ")

	// When the run is over, no task waits for it.
	second := p.arrive(t.Context(), p.arrival(0, "another", "a"))
	require.NoError(t, p.Client().TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), "test"))
	err = p.await(second).err
	require.True(t, errors.As(err, &broken) && broken.Code == wire.CodeBarrierBroken, "%v", err)
}

// `clusterrun status --barriers` lists who waits at which barrier, and who is missing since
// when.
func (p *meetingPlace) areListed(t *testing.T) {
	run, err := p.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "it's-run", TaskQueue: spec.TaskQueue}, spec.WorkflowType,
		&spec.RunSpec{Tasks: []spec.TaskGroup{harness.Shell("worker", 2, "exec sleep 300")}})
	require.NoError(t, err)
	p.run = spec.RunRef{WorkflowID: run.GetID(), RunID: run.GetRunID()}
	p.tasks = []string{"worker-0", "worker-1"}

	_, stderr := p.Succeeds(t, "status", "--barriers", run.GetID())
	require.Contains(t, stderr, "no task waits at a barrier of run it's-run")
	code, stdout, stderr := p.CLI(t, "status", "--barriers", "--json", run.GetID())
	require.Zero(t, code, stderr)
	require.JSONEq(t, `{"run_id": "it's-run", "barriers": []}`, stdout)

	a := p.arrival(0, "end of epoch/1", "a")
	a.Timeout = time.Hour
	waits := p.arrive(t.Context(), a)
	harness.Eventually(t, "the barrier is listed, and the run is up", func() bool {
		code, stdout, stderr = p.CLI(t, "status", "--barriers", run.GetID())
		return code == 0 && strings.Contains(stdout, "worker-0") && strings.Contains(stdout, "running")
	})
	require.Regexp(t, `(?m)^barrier end of epoch/1, round 1: 1 waiting, 1 missing, breaks in (1h|59m|60m)`, stdout)
	require.Regexp(t, `(?m)^worker-1 +missing +host-a +\d\d:\d\d:\d\d +\S+ +running$`, stdout)
	require.Regexp(t, `(?m)^worker-0 +waiting +host-0 +\d\d:\d\d:\d\d +\S+ +-$`, stdout)
	stdout = p.OK(t, "status", "--barriers", "--json", run.GetID())
	listed := must.JSON[struct{ Barriers []starter.Barrier }](t, stdout)
	require.Len(t, listed.Barriers, 1)
	require.Equal(t, "worker-1", listed.Barriers[0].Missing[0].Task)

	code, _, stderr = p.CLI(t, "status", "--barriers", "no-such-run")
	require.NotZero(t, code)
	require.Contains(t, stderr, "no run \"no-such-run\"")
	require.Empty(t, waits)
}

// A task that comes and goes without end, while others wait, does not exhaust the round: it
// continues in other executions of its workflow, without a visible effect.
func TestBarrierOfATaskThatComesAndGoes(t *testing.T) {
	takesLong(t)
	t.Parallel()
	p := newMeetingPlace(t, 3)
	patient := p.arrive(t.Context(), p.arrival(1, "epoch", "b"))
	p.awaitWaiting("epoch", 0, 1)
	execution := func() string {
		d := must.Get(p.Client().DescribeWorkflowExecution(t.Context(), spec.BarrierID(p.run, "epoch", 0), ""))(t)
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	first := execution()
	deadline := time.Now().Add(3 * time.Minute)
	for i := 0; i%20 != 0 || execution() == first; i++ {
		require.True(t, time.Now().Before(deadline), "it never went on")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.ErrorIs(t, p.await(p.arrive(ctx, p.arrival(0, "epoch", fmt.Sprint("a", i)))).err, context.DeadlineExceeded)
		cancel()
	}
	require.Empty(t, patient)
	// Its last arrivals may still be on their way. Its host sends its messages in order, so all
	// have arrived once a later one has.
	ctx, cancel := context.WithCancel(t.Context())
	again := p.arrive(ctx, p.arrival(0, "epoch", "again"))
	p.awaitWaiting("epoch", 0, 2)
	cancel()
	require.ErrorIs(t, p.await(again).err, context.Canceled)
	p.awaitWaiting("epoch", 0, 1)
	last := p.arrive(t.Context(), p.arrival(0, "epoch", "last"))
	p.released(p.arrive(t.Context(), p.arrival(2, "epoch", "c")), 0)
	p.released(last, 0)
	p.released(patient, 0)
}
