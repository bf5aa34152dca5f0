package taskservices

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

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// aRun answers like a real run, as the host sees it.
type aRun struct {
	t *testing.T

	mu      sync.Mutex
	stands  spec.Stopping
	answers map[string]spec.Stopping // by update ID
	asked   []RunUpdate
	// fails lists the errors of the next updates. If lost is set, the updates are carried out
	// anyway.
	fails []error
	lost  bool
}

func (r *aRun) Update(_ context.Context, run runkey.Run, q RunUpdate, answer any) error {
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

func (r *aRun) carryOut(q RunUpdate) spec.Stopping {
	if in := q.Input.(spec.TogetherRequest); !r.stands.Stop {
		r.stands = spec.Stopping{Seq: r.stands.Seq + 1, Stop: true, By: in.Task, Reason: in.Reason, Error: in.Error}
	}
	return r.stands
}

func newRun(t *testing.T) *aRun { return &aRun{t: t, answers: map[string]spec.Stopping{}} }

func planned(t *testing.T, s *Services) *spec.Stopping {
	t.Helper()
	r := must.Get(s.Plans.Run(servedRun))(t)
	return r.Stopping
}

// The run answers a request, and the host stores the answer for the next host worker.
func TestATaskAsksTheRunToStop_CO01(t *testing.T) {
	r := newRun(t)
	h := newServices(t, Config{Runs: r})
	long := strings.Repeat("x", 5000)
	s, err := h.stops.RequestStop(t.Context(), by("worker-1"), spec.TogetherRequest{
		Task: "somebody-else", Key: "k", Reason: "enough", Error: &spec.TogetherError{Kind: "ValueError", Message: long},
	})
	require.NoError(t, err)
	assert.True(t, s.Stop)
	assert.Equal(t, "worker-1", s.By)
	require.Len(t, r.asked, 1)
	assert.Equal(t, "stop-together/1/worker-1/k", r.asked[0].ID)
	assert.Equal(t, spec.UpdateStopTogether.Name, r.asked[0].Name)
	wish := r.asked[0].Input.(spec.TogetherRequest)
	assert.Equal(t, 1, wish.Generation)
	assert.NotZero(t, wish.BootNanos)
	assert.Less(t, len(wish.Error.Message), 1100)
	assert.Equal(t, &s, planned(t, h))
}

// Once the host knows of a stop, it does not ask the run again, because often all tasks ask
// together, and a run accepts two thousand requests in total.
func TestAllTasksAskAtOnce(t *testing.T) {
	r := newRun(t)
	h := newServices(t, Config{Runs: r})
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			s, err := h.stops.RequestStop(t.Context(), by(fmt.Sprint("worker-", i)), spec.TogetherRequest{})
			assert.NoError(t, err)
			assert.Equal(t, 1, s.Seq)
		})
	}
	all.Wait()
	assert.Len(t, r.asked, 1)
}

// A request outlasts an outage. If it was carried out but its answer was lost, it is not carried
// out twice.
func TestAskingOutlivesAnOutage(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := newRun(t)
		r.fails, r.lost = []error{serviceerror.NewUnavailable("away"), errors.New("no connection yet")}, lost
		h := newServices(t, Config{Runs: r})
		s := must.Get(h.stops.RequestStop(t.Context(), by("worker-0"), spec.TogetherRequest{}))(t)
		assert.Equal(t, 1, s.Seq)
		require.Len(t, r.asked, 3)
		assert.NotEmpty(t, strings.TrimPrefix(r.asked[0].ID, "stop-together/1/worker-0/"), "a key of our own")
		assert.Equal(t, r.asked[0].ID, r.asked[2].ID)
	}
	r := newRun(t)
	h := newServices(t, Config{Runs: r})
	ctx, cancel := context.WithCancel(t.Context())
	r.fails = slices.Repeat([]error{serviceerror.NewUnavailable("away")}, 1000)
	go cancel()
	_, err := h.stops.RequestStop(ctx, by("worker-0"), spec.TogetherRequest{})
	require.Error(t, err)
	assert.Nil(t, planned(t, h))
}

// While one request is in progress, the others queue, and give up when their callers do.
func TestWaitingInLine(t *testing.T) {
	h := newServices(t, Config{Runs: newRun(t)})
	_, leave, err := h.stops.enter(t.Context(), by("worker-1"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.stops.RequestStop(ctx, by("worker-0"), spec.TogetherRequest{})
	require.ErrorIs(t, err, context.Canceled)
	leave()
	_, err = h.stops.RequestStop(t.Context(), by("worker-0"), spec.TogetherRequest{})
	require.NoError(t, err)
}

// A refused request is not repeated.
func TestRefusals(t *testing.T) {
	r := newRun(t)
	h := newServices(t, Config{Runs: r})
	r.fails = []error{&RefusedError{Message: "the run has ended"}}
	_, err := h.stops.RequestStop(t.Context(), by("worker-0"), spec.TogetherRequest{})
	require.EqualError(t, err, "the run has ended")
	assert.Len(t, r.asked, 1)
}

func TestStopsOfAnotherTime(t *testing.T) {
	r := newRun(t)
	h := newServices(t, Config{Runs: r})
	older := by("worker-0")
	older.Generation = 0
	_, err := h.stops.RequestStop(t.Context(), older, spec.TogetherRequest{})
	require.EqualError(t, err, "restart 1 of all tasks has started; this request is for restart 0")
	nobody := by("worker-0")
	nobody.Run.RunID = "2"
	_, err = h.stops.RequestStop(t.Context(), nobody, spec.TogetherRequest{})
	require.EqualError(t, err, "the run has been released on this host")
	h.Plans.(*remembered).change(servedRun, func(r *Run) { r.Released = true })
	_, err = h.stops.RequestStop(t.Context(), by("worker-0"), spec.TogetherRequest{})
	require.EqualError(t, err, "the run has been released on this host")
	assert.Empty(t, r.asked)
}
