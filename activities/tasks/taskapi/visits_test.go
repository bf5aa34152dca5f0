package taskapi

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// waits are barriers that release no task until their arrivals end. They report who arrived and
// why each arrival ended.
type waits struct {
	arrived chan Arrival
	left    chan error
}

func waitElsewhere(h *host) waits {
	w := waits{make(chan Arrival, 1), make(chan error, 1)}
	h.Barriers = elsewhere(func(ctx context.Context, a Arrival) (Release, error) {
		w.arrived <- a
		<-ctx.Done()
		w.left <- context.Cause(ctx)
		return Release{}, ctx.Err()
	})
	return w
}

// A barrier that ends while a task waits does not answer: the client arrives again.
func TestComeAgain(t *testing.T) {
	h := newHost(t, 1)
	keys := make(chan string, 2)
	h.Barriers = elsewhere(func(_ context.Context, a Arrival) (Release, error) {
		keys <- a.Key
		if len(keys) == 1 {
			return Release{}, ErrComeAgain
		}
		return Release{Round: 3}, nil
	})
	r, err := h.task(0).Barrier(testContext(t), "x")
	require.NoError(t, err)
	assert.Equal(t, task.Release{Round: 3, Parties: 1}, r)
	assert.Equal(t, <-keys, <-keys, "it is the same arrival")
}

// A mismatch of participants has the same code as at a local barrier.
func TestRefusedElsewhere(t *testing.T) {
	h := newHost(t, 1)
	for why, code := range map[BarrierWhy]string{OtherParticipants: wire.CodeBarrierMismatch, TooOften: wire.CodeAlreadyWaiting} {
		h.Barriers = elsewhere(func(context.Context, Arrival) (Release, error) {
			return Release{}, &BarrierError{Why: why, Message: "not so"}
		})
		var refused *task.APIError
		_, err := h.task(0).Barrier(testContext(t), "x")
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, code, refused.Code)
	}
	h.Barriers = elsewhere(func(context.Context, Arrival) (Release, error) { return Release{}, errors.New("on fire") })
	p := h.refused(500, wire.CodeInternal, "POST", wire.PathBarriers+"x", "")
	assert.Equal(t, `barrier "x": on fire`, p.Message)
}

// An arrival at a barrier across hosts can be withdrawn by its key, too.
func TestWithdrawnElsewhere(t *testing.T) {
	h := newHost(t, 1)
	w := waitElsewhere(h)
	const path = wire.PathBarriers + "x"
	told := make(chan string, 1)
	go func() {
		_, text, _ := h.do(0, "POST", path, `{"key":"k"}`)
		told <- text
	}()
	<-w.arrived
	for _, key := range []string{"another", "k"} {
		_, text, _ := h.do(0, "DELETE", path+"?key="+key, "")
		assert.JSONEq(t, `{"withdrawn": true}`, text)
	}
	require.ErrorContains(t, <-w.left, `the arrival at barrier "x" was withdrawn`)
	assert.Contains(t, <-told, wire.CodeBarrierWithdrawn)

	// This is too late: the arrival was answered, whether or not the answer was read.
	h.Barriers = elsewhere(func(_ context.Context, a Arrival) (Release, error) {
		if a.Key == "broken" {
			return Release{}, &BarrierError{Why: Broken, Message: "worker-1 has ended"}
		}
		return Release{Round: 2}, nil
	})
	_, _, _ = h.do(0, "POST", path, `{"key":"k"}`)
	_, text, _ := h.do(0, "DELETE", path+"?key=k", "")
	assert.JSONEq(t, `{"withdrawn": false, "released": {"round": 2, "index": 0, "parties": 1}}`, text)
	_, _, _ = h.do(0, "POST", path, `{"key":"broken"}`)
	p := h.refused(409, wire.CodeBarrierBroken, "DELETE", path+"?key=broken", "")
	assert.Equal(t, "worker-1 has ended", p.Message)

	h.Ended(h.ids[0], false, "exited with exit code 1")
	_, text, _ = h.do(0, "DELETE", path+"?key=k", "")
	assert.JSONEq(t, `{"withdrawn": true}`, text, "the keys were those of the process that ended")
}

// The end of a process ends its waits even if another process holds its connection open. The
// end of its generation does so, too.
func TestVisitsEndWithTheProcess(t *testing.T) {
	h := newHost(t, 1)
	w := waitElsewhere(h)
	first := h.arrive(testContext(t), 0, "x")
	<-w.arrived
	h.Ended(h.ids[0], false, "exited with exit code 1")
	require.ErrorContains(t, <-w.left, "the process of worker-0 that arrived has ended")
	assert.Contains(t, broken(t, <-first).Message, "the process of worker-0 that arrived has ended")

	second := h.arrive(testContext(t), 0, "x")
	<-w.arrived
	h.Server.Release(h.run)
	require.ErrorContains(t, <-w.left, "the run is released on this host")
	assert.Contains(t, broken(t, <-second).Message, "the run is released on this host")
}
