package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/activities/taskservices"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// aRun is a run that answers as the real one does, as far as the host can tell.
type aRun struct {
	t *testing.T

	mu      sync.Mutex
	stands  spec.Stopping
	answers map[string]spec.Stopping // by the ID of the update
	asked   []taskservices.RunUpdate
	// fails are the errors of the next updates, after which they are carried out or
	// not, as lost says.
	fails []error
	lost  bool
	// tasks are those of the run, for which it was asked so often, or tasksFail is.
	tasks      []string
	tasksAsked int
	tasksFail  error
}

func (r *aRun) Tasks(_ context.Context, run supervisor.RunKey) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Equal(r.t, servedRun, run)
	r.tasksAsked++
	return r.tasks, r.tasksFail
}

func (r *aRun) Update(_ context.Context, run supervisor.RunKey, q taskservices.RunUpdate, answer any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Equal(r.t, servedRun, run)
	r.asked = append(r.asked, q)
	var fail error
	if len(r.fails) > 0 {
		fail, r.fails = r.fails[0], r.fails[1:]
		if !r.lost {
			return fail
		}
	}
	s, known := r.answers[q.ID]
	if !known {
		s = r.carryOut(q)
		r.answers[q.ID] = s
	}
	if fail != nil {
		return fail
	}
	b, err := json.Marshal(s) // as it travels
	require.NoError(r.t, err)
	return json.Unmarshal(b, answer)
}

func (r *aRun) carryOut(q taskservices.RunUpdate) spec.Stopping {
	switch in := q.Input.(type) {
	case spec.TogetherRequest:
		if !r.stands.Stop {
			r.stands = spec.Stopping{Seq: r.stands.Seq + 1, Stop: true, By: in.Task, Reason: in.Reason, Error: in.Error}
		}
	case spec.ClearStopRequest:
		if r.stands.Stop {
			r.stands = spec.Stopping{Seq: r.stands.Seq + 1}
		}
	}
	return r.stands
}

// stopHost is a host with a plan of generation 1 of a run.
func stopHost(t *testing.T, state string, r *aRun) *Host {
	t.Helper()
	h, err := NewHost(Config{Name: "host-a", StateDir: state, Supervisor: &listed{}, Runs: r, Log: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.tasks.Close() })
	_, err = h.plans.update(servedRun, func(p *plan) (*plan, error) {
		if p == nil {
			p = &plan{Run: servedRun, Generation: 1, Spec: (&spec.RunSpec{AutoRestart: true}).WithDefaults()}
		}
		return p, nil
	})
	require.NoError(t, err)
	return h
}

func newRun(t *testing.T) *aRun { return &aRun{t: t, answers: map[string]spec.Stopping{}} }

func by(task string) taskapi.ID {
	return taskapi.ID{Run: taskRun(servedRun), Generation: 1, Task: task}
}

func planned(t *testing.T, h *Host) *spec.Stopping {
	t.Helper()
	p, err := h.plans.get(servedRun)
	require.NoError(t, err)
	return p.Stopping
}

// A wish is the run's to answer, and what that says is kept for the next host worker.
func TestATaskAsksTheRunToStop_CO01(t *testing.T) {
	r, state := newRun(t), t.TempDir()
	h := stopHost(t, state, r)
	long := strings.Repeat("x", 5000)
	s, err := stops{h}.RequestStop(t.Context(), by("worker-1"), spec.TogetherRequest{
		Task: "somebody-else", Key: "k", Reason: "enough", Error: &spec.TogetherError{Kind: "ValueError", Message: long},
	})
	require.NoError(t, err)
	assert.True(t, s.Stop)
	assert.Equal(t, "worker-1", s.By)
	require.Len(t, r.asked, 1)
	assert.Equal(t, "stop-together/1/worker-1/k", r.asked[0].ID)
	assert.Equal(t, spec.UpdateStopTogether, r.asked[0].Name)
	wish := r.asked[0].Input.(spec.TogetherRequest)
	assert.Equal(t, 1, wish.Generation)
	assert.NotZero(t, wish.BootNanos)
	assert.Less(t, len(wish.Error.Message), 1100)
	assert.Equal(t, &s, planned(t, h))

	again := stopHost(t, state, newRun(t))
	assert.Equal(t, s.Seq, planned(t, again).Seq)
	assert.True(t, planned(t, again).Stop)
}

// Once the host knows of a stop the run is not asked again: often all tasks ask at
// once, and a run takes two thousand requests in all.
func TestAllTasksAskAtOnce(t *testing.T) {
	r := newRun(t)
	h := stopHost(t, t.TempDir(), r)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			s, err := stops{h}.RequestStop(t.Context(), by(fmt.Sprint("worker-", i)), spec.TogetherRequest{})
			assert.NoError(t, err)
			assert.Equal(t, 1, s.Seq)
		})
	}
	all.Wait()
	assert.Len(t, r.asked, 1)
}

// CO-13: after a clear the next wish is a first one again. One that was made before
// is not made again.
func TestATaskClearsAStop_CO13(t *testing.T) {
	r := newRun(t)
	h := stopHost(t, t.TempDir(), r)
	first := spec.TogetherRequest{Key: "k", Error: &spec.TogetherError{Message: "First"}}
	_, err := stops{h}.RequestStop(t.Context(), by("worker-0"), first)
	require.NoError(t, err)
	s, err := stops{h}.ClearStop(t.Context(), by("worker-1"))
	require.NoError(t, err)
	assert.Equal(t, spec.Stopping{Seq: 2}, s)
	assert.Equal(t, spec.ClearStopRequest{Task: "worker-1", Generation: 1}, r.asked[1].Input)
	s, err = stops{h}.RequestStop(t.Context(), by("worker-0"), first)
	require.NoError(t, err)
	assert.Equal(t, spec.Stopping{Seq: 2}, s, "the same key is the same wish")
	s, err = stops{h}.RequestStop(t.Context(), by("worker-0"), spec.TogetherRequest{Key: "l", Error: &spec.TogetherError{Message: "Second"}})
	require.NoError(t, err)
	assert.Equal(t, 3, s.Seq)
	assert.Equal(t, "Second", s.Error.Message)
}

// An outage is waited for, and what was carried out though its answer was lost is
// not carried out twice.
func TestAskingOutlivesAnOutage(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := newRun(t)
		r.fails, r.lost = []error{serviceerror.NewUnavailable("away"), errors.New("no connection yet")}, lost
		h := stopHost(t, t.TempDir(), r)
		s, err := stops{h}.RequestStop(t.Context(), by("worker-0"), spec.TogetherRequest{})
		require.NoError(t, err)
		assert.Equal(t, 1, s.Seq)
		require.Len(t, r.asked, 3)
		assert.NotEmpty(t, strings.TrimPrefix(r.asked[0].ID, "stop-together/1/worker-0/"), "a key of our own")
		assert.Equal(t, r.asked[0].ID, r.asked[2].ID)
	}
	r := newRun(t)
	h := stopHost(t, t.TempDir(), r)
	ctx, cancel := context.WithCancel(t.Context())
	r.fails = slices.Repeat([]error{serviceerror.NewUnavailable("away")}, 1000)
	go cancel()
	_, err := stops{h}.RequestStop(ctx, by("worker-0"), spec.TogetherRequest{})
	require.Error(t, err)
	assert.Nil(t, planned(t, h))
}

// While one asks, the others wait in line, and give up when nobody waits for them.
func TestWaitingInLine(t *testing.T) {
	h := stopHost(t, t.TempDir(), newRun(t))
	leave, err := h.asking.enter(t.Context(), servedRun)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = stops{h}.RequestStop(ctx, by("worker-0"), spec.TogetherRequest{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = stops{h}.ClearStop(ctx, by("worker-0"))
	require.ErrorIs(t, err, context.Canceled)
	leave()
	_, err = stops{h}.ClearStop(t.Context(), by("worker-0"))
	require.NoError(t, err)
}

// What the run refuses is not asked again.
func TestRefusals(t *testing.T) {
	r := newRun(t)
	h := stopHost(t, t.TempDir(), r)
	r.fails = []error{&taskservices.RefusedError{Message: "the run has ended"}}
	_, err := stops{h}.RequestStop(t.Context(), by("worker-0"), spec.TogetherRequest{})
	require.EqualError(t, err, "the run has ended")
	assert.Len(t, r.asked, 1)
}

func TestStopsOfAnotherTime(t *testing.T) {
	r := newRun(t)
	h := stopHost(t, t.TempDir(), r)
	older := by("worker-0")
	older.Generation = 0
	_, err := stops{h}.RequestStop(t.Context(), older, spec.TogetherRequest{})
	require.EqualError(t, err, "generation 0 of the group is over; this is generation 1")
	_, err = stops{h}.ClearStop(t.Context(), older)
	require.ErrorContains(t, err, "generation 0")
	nobody := by("worker-0")
	nobody.Run.RunID = "2"
	_, err = stops{h}.RequestStop(t.Context(), nobody, spec.TogetherRequest{})
	require.EqualError(t, err, "the run is released on this host")
	_, err = h.plans.update(servedRun, func(p *plan) (*plan, error) {
		p.Released = true
		return p, nil
	})
	require.NoError(t, err)
	_, err = stops{h}.ClearStop(t.Context(), by("worker-0"))
	require.EqualError(t, err, "the run is released on this host")
	assert.Empty(t, r.asked)
}

// A host that is told of a stop starts nothing again until it is told of its clear,
// whatever the order in which it hears of them. What the chief's end has sealed stays
// so.
func TestAHostIsToldOfAStop(t *testing.T) {
	c := newControl(t)
	run := c.host.plans.all()[0].Run
	tell := func(s spec.Stopping) *plan {
		_, err := c.env.ExecuteActivity(c.host.Control, ControlInput{Op: lifecycle.ControlTell, Stopping: &s})
		require.NoError(t, err)
		p, err := c.host.plans.get(run)
		require.NoError(t, err)
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
	_, err := c.env.ExecuteActivity(c.host.Control, ControlInput{Op: lifecycle.ControlSeal})
	require.NoError(t, err)
	assert.True(t, tell(spec.Stopping{Seq: 5}).sealed())

	_, err = c.env.ExecuteActivity(c.host.Control, ControlInput{Op: lifecycle.ControlTell, Generation: 7, Stopping: &spec.Stopping{Seq: 9, Stop: true}})
	require.NoError(t, err)
	assert.Equal(t, 5, tell(spec.Stopping{Seq: 5}).Stopping.Seq, "that was for another generation")
	_, err = c.env.ExecuteActivity(c.host.Control, ControlInput{Op: lifecycle.ControlTell})
	require.ErrorContains(t, err, "there is nothing to tell")
}

// A task that waits to be started again does not come back during a stop.
func TestNobodyComesBackDuringAStop(t *testing.T) {
	h := &Host{}
	failed := []supervisor.Process{{Exit: &supervisor.Exit{Code: 1}}}
	p := &plan{Spec: &spec.RunSpec{AutoRestart: true}}
	assert.True(t, h.comesBack(p, failed))
	p.Stopping = &spec.Stopping{Seq: 1, Stop: true}
	assert.False(t, h.comesBack(p, failed))
	p.Stopping = &spec.Stopping{Seq: 2}
	assert.True(t, h.comesBack(p, failed))
}

// The plan of the next generation begins with what was said last, so that an older
// word that arrives late means nothing.
func TestTheNextPlanKnowsOfAClear(t *testing.T) {
	h := stopHost(t, t.TempDir(), newRun(t))
	p := h.newPlan(servedRun, ReserveInput{Generation: 2, Spec: &spec.RunSpec{}, Stopping: &spec.Stopping{Seq: 2}}, nil)
	assert.Equal(t, &spec.Stopping{Seq: 2}, p.Stopping)
	assert.False(t, p.sealed())
}
