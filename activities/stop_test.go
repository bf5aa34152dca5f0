package activities

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A run's remaining processes are always stopped with their type's signal and grace, because a
// checkpoint may depend on it.
func TestWhatIsLeftIsStoppedAsItsTypeIs(t *testing.T) {
	long := spec.Duration(5 * time.Minute)
	s := (&spec.RunSpec{Tasks: []spec.TaskGroup{
		{Type: "worker", Count: new(2)}, {Type: "ps", Stop: spec.Stop{Signal: "SIGUSR1", Grace: &long}},
	}}).WithDefaults()
	usual := supervisor.Stop{Signal: int(unix.SIGTERM), Grace: s.Stop.Grace.Std()}
	own := supervisor.Stop{Signal: int(unix.SIGUSR1), Grace: 5 * time.Minute}
	want := supervisor.Stops{Stop: usual, Tasks: map[string]supervisor.Stop{"ps-0": own, "ps-7": own}}
	p := &plan{Run: servedRun, Spec: s, Tasks: []string{"worker-0", "ps-0"}, Added: map[string]addedTask{"ps-7": {Task: spec.Task{Type: "ps", Index: 7}}}}

	api := &stopped{}
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: api, Server: &describes{}, Log: zap.NewNop()}))(t)
	_, err := h.plans.update(servedRun, func(*plan) (*plan, error) { return p, nil })
	require.NoError(t, err)

	require.NoError(t, h.watch.abandon(p, "for a test", nil))
	assert.Equal(t, want, api.as)

	api.processes = []supervisor.Process{living("ps-0", 0, 0)}
	require.NoError(t, h.reservations.endOlder(t.Context(), servedRun, hostapi.ReserveInput{Spec: s, Generation: 1}))
	require.Len(t, api.stops, 1)
	assert.Equal(t, own, supervisor.Stop{Signal: api.stops[0].Signal, Grace: api.stops[0].Grace})

	none := must.Get((*plan)(nil).stops())(t)
	assert.Equal(t, supervisor.Stops{Stop: supervisor.Stop{Signal: int(unix.SIGTERM), Grace: defaultGrace}}, none)
}

// A host that receives a stop does not restart anything until the stop is cleared. The two may
// arrive in any order. A run sealed by its chief's end stays sealed.
func TestAHostIsToldOfAStop(t *testing.T) {
	c := newControl(t)
	run := c.host.plans.all()[0].Run
	tell := func(s spec.Stopping) *plan {
		_, err := c.env.ExecuteActivity(c.host.TellStopping, hostapi.TellStoppingInput{Stopping: s})
		require.NoError(t, err)
		p := must.Get(c.host.plans.get(run))(t)
		return p
	}
	p := tell(spec.Stopping{Seq: 1, Stop: true, By: "worker-0"})
	assert.True(t, p.sealed())
	assert.False(t, p.Sealed)
	p = tell(spec.Stopping{Seq: 4})
	assert.False(t, p.sealed())
	p = tell(spec.Stopping{Seq: 3, Stop: true})
	assert.False(t, p.sealed(), "it is older")
	assert.Equal(t, 4, p.Stopping.Seq)
	_, err := c.env.ExecuteActivity(c.host.SealTasks, hostapi.TasksInput{})
	require.NoError(t, err)
	assert.True(t, tell(spec.Stopping{Seq: 5}).sealed())

	_, err = c.env.ExecuteActivity(c.host.TellStopping, hostapi.TellStoppingInput{Group: spec.Group{Generation: 7}, Stopping: spec.Stopping{Seq: 9, Stop: true}})
	require.NoError(t, err)
	assert.Equal(t, 5, tell(spec.Stopping{Seq: 5}).Stopping.Seq, "that was for another generation")
}

// A task that is waiting for a restart does not come back during a stop.
func TestNobodyComesBackDuringAStop(t *testing.T) {
	failed := []supervisor.Process{{Exit: &supervisor.Exit{Code: 1}}}
	p := &plan{Spec: &spec.RunSpec{AutoRestart: true}}
	assert.True(t, p.comesBack(failed, false))
	p.Stopping = &spec.Stopping{Seq: 1, Stop: true}
	assert.False(t, p.comesBack(failed, false))
	p.Stopping = &spec.Stopping{Seq: 2}
	assert.True(t, p.comesBack(failed, false))
}

// The plan of the next generation starts with the latest message, so that an older one that arrives
// late is ignored.
func TestTheNextPlanKnowsOfAClear(t *testing.T) {
	h := assemble(&core{now: time.Now})
	p := h.reservations.newPlan(servedRun, hostapi.ReserveInput{Generation: 2, Spec: &spec.RunSpec{}, Stopping: &spec.Stopping{Seq: 2}}, nil)
	assert.Equal(t, &spec.Stopping{Seq: 2}, p.Stopping)
	assert.False(t, p.sealed())
}

// stopNotes is a supervisor that records its stop requests.
type stopNotes struct {
	supervisor.API
	requests []supervisor.StopRequest
}

func (s *stopNotes) Stop(_ context.Context, r supervisor.StopRequest) (supervisor.TasksReply, error) {
	s.requests = append(s.requests, r)
	return supervisor.TasksReply{}, nil
}

// An error that a process reported before it was stopped is its own, and the process gets a moment
// to exit. An error that it reports because of the stop is not.
func TestAProcessThatReportedBeforeItWasStoppedHasFailed(t *testing.T) {
	const grace = 50 * time.Millisecond
	begin := func(t *testing.T) (*stopNotes, *taskLease, supervisor.Process) {
		s := &stopNotes{}
		host := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Log: zap.NewNop()}))(t)
		p := &plan{Spec: (&spec.RunSpec{Stop: spec.Stop{Grace: spec.DurationOf(grace)}}).WithDefaults()}
		return s, &taskLease{Host: host, plan: p, key: runkey.Task{Task: "worker-0"}}, supervisor.Process{PID: 1, LogDir: t.TempDir()}
	}
	report := func(t *testing.T, p supervisor.Process) {
		require.NoError(t, os.WriteFile(filepath.Join(p.LogDir, tasklog.ErrorFile), []byte(`{"message": "KeyError: 'lr'"}`), 0o600))
	}

	t.Run("because of the stop", func(t *testing.T) {
		s, l, p := begin(t)
		require.NoError(t, l.stopProcess(t.Context(), p))
		require.Len(t, s.requests, 1)
		assert.False(t, s.requests[0].Failed)
		assert.Equal(t, grace, s.requests[0].Grace)
		report(t, p)
		p.Exit = &supervisor.Exit{Code: 1, Reason: supervisor.ReasonCollateral}
		exit, _ := describeExit(l.Name, p, l.Owned)
		assert.Equal(t, spec.CauseCollateral, exit.Cause)
		assert.False(t, exit.Reported)
	})

	t.Run("before it, and it does not end", func(t *testing.T) {
		s, l, p := begin(t)
		report(t, p)
		require.NoError(t, l.stopProcess(t.Context(), p))
		require.Len(t, s.requests, 1)
		assert.True(t, s.requests[0].Failed)
		assert.Zero(t, s.requests[0].Grace, "all of it has been waited for")
		p.Exit = &supervisor.Exit{Code: -15, Reason: supervisor.ReasonCollateral, Failed: true}
		exit, _ := describeExit(l.Name, p, l.Owned)
		assert.Equal(t, spec.CauseCollateral, exit.Cause)
		assert.True(t, exit.Reported)
		assert.Equal(t, "KeyError: 'lr'", exit.Message)
	})

	t.Run("before it, and it ends by itself", func(t *testing.T) {
		s, l, p := begin(t)
		report(t, p)
		ended, end := context.WithCancel(t.Context())
		end()
		require.NoError(t, l.stopProcess(ended, p))
		assert.Empty(t, s.requests)
	})
}

// slow is a call that returns some time after its context is done. It sends to entered when it is
// called and to ending when the context is done, and returns once let is closed.
type slow struct{ entered, ending, let chan struct{} }

func newSlow() *slow {
	return &slow{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})}
}

func (s *slow) call(ctx context.Context) error {
	select {
	case s.entered <- struct{}{}:
	default:
	}
	<-ctx.Done()
	select {
	case s.ending <- struct{}{}:
	default:
	}
	<-s.let
	return ctx.Err()
}

// slowSupervisor is a supervisor with processes that never exit. A nil call does not delay.
type slowSupervisor struct {
	supervisor.API
	wait, stop *slow
}

func (s *slowSupervisor) Wait(ctx context.Context, _ supervisor.ProcessRef) (supervisor.Process, error) {
	if s.wait == nil {
		<-ctx.Done()
		return supervisor.Process{}, ctx.Err()
	}
	return supervisor.Process{}, s.wait.call(ctx)
}

func (s *slowSupervisor) Stop(ctx context.Context, _ supervisor.StopRequest) (supervisor.TasksReply, error) {
	if s.stop == nil {
		return supervisor.TasksReply{}, nil
	}
	return supervisor.TasksReply{}, s.stop.call(ctx)
}

func (*slowSupervisor) Sample(context.Context, supervisor.SampleRequest) (supervisor.SampleReply, error) {
	return supervisor.SampleReply{}, nil
}

// slowServer accepts heartbeats, immediately if beat is nil.
type slowServer struct {
	Server
	beat *slow
}

func (s *slowServer) RecordActivityHeartbeat(ctx context.Context, _ []byte, _ ...any) error {
	if s.beat == nil {
		return nil
	}
	return s.beat.call(ctx)
}

// A run's own order stops a process before the server delivers the cancellation. Tasks without a
// lease are left to the cancellation.
func TestAnOrderStopsALeasedProcess(t *testing.T) {
	s := &slowSupervisor{stop: newSlow()}
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: &slowServer{}, Log: zap.NewNop()}))(t)
	(&serving{t: t}).do(func(ctx context.Context) error {
		l := &taskLease{Host: h, ctx: ctx, plan: &plan{Spec: (&spec.RunSpec{}).WithDefaults()}, key: runkey.Task{Run: runOf(ctx, ""), Task: "worker-0"}}
		l.ordered = h.leases.attach(l.key)
		_, err := h.StopTasks(ctx, hostapi.TasksInput{Tasks: []string{"worker-0", "worker-1"}})
		require.NoError(t, err)
		over := make(chan error, 1)
		go func() { over <- l.attend(&supervisor.Process{Key: l.key}) }()
		await(t, s.stop.entered, "the supervisor")
		close(s.stop.let)
		h.Close()
		require.ErrorIs(t, <-over, errAway)
		assert.True(t, l.cancelled())
		return nil
	})
}

// A host that shuts down waits for its leases' calls, and releases the leases, so that none is in
// use when the next host worker starts.
func TestTheEndOfAHostWaitsForItsLeases(t *testing.T) {
	for name, cancelled := range map[string]bool{"wait": false, "confirm": true, "stop": true} {
		t.Run(name, func(t *testing.T) {
			last := newSlow()
			s, server := &slowSupervisor{}, &slowServer{}
			switch name {
			case "wait":
				s.wait = last
			case "confirm":
				server.beat = last
			case "stop":
				s.stop = last
			}
			h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()}))(t)
			held := make(chan error, 1)
			over := make(chan struct{})
			attend := func(ctx context.Context) error {
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				if cancelled {
					cancel(temporal.NewCanceledError())
				}
				l := &taskLease{Host: h, ctx: ctx, plan: &plan{Spec: (&spec.RunSpec{}).WithDefaults()}, key: runkey.Task{Task: "worker-0"}}
				held <- l.attend(&supervisor.Process{Key: l.key})
				return nil
			}
			go func() {
				defer close(over)
				(&serving{t: t}).do(attend)
			}()
			await(t, last.entered, name+" is asked")
			closed := make(chan struct{})
			go func() {
				h.Close()
				close(closed)
			}()
			select {
			case <-last.ending:
			case <-closed:
				t.Fatal("the host is closed, and somebody is at work")
			}
			select {
			case err := <-held:
				assert.ErrorIs(t, err, errAway)
			case <-time.After(time.Minute):
				t.Fatal("the lease is held")
			}
			select {
			case <-closed:
				t.Fatal("the host is closed, and somebody is at work")
			default:
			}
			close(last.let)
			await(t, closed, "the host is closed")
			await(t, over, "the activity is over")
		})
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal("not within a minute: " + what)
	}
}
