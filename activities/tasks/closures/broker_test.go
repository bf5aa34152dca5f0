package closures

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// held is a process with a function hold, which blocks until released.
func held(m *machine, slots int) (began, release chan struct{}) {
	began, release = make(chan struct{}, 10), make(chan struct{})
	m.goProcess("worker-0", slots, map[string]any{
		"hold": func(ctx context.Context) (string, error) {
			began <- struct{}{}
			select {
			case <-release:
				return "held", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		},
		"f": func(context.Context) (int, error) { return 1, nil },
	})
	m.awaitServing(1)
	return began, release
}

// A long call delays neither the closures behind it nor the outcomes of earlier calls.
func TestALongCallReturnsTheOthers(t *testing.T) {
	m := newMachine(t, "worker-0")
	_, release := held(m, 1)
	b := m.now()
	assert.True(t, b.IsIdle("worker-0"))
	assert.False(t, b.IsIdle("chief-0"), "it serves no calls")
	b.Queue = "host-a"
	r := must.Get(b.Run(t.Context(), closure.Batch{Closures: []closure.Closure{
		calling(1, "f"), calling(2, "hold"), calling(3, "f"), calling(4, "f"),
	}}, false))(t)
	require.Len(t, r.Outcomes, 1)
	assertText(t, "1", r.Outcomes[0])
	assert.Equal(t, []uint64{2}, r.Calling)
	assert.Equal(t, []uint64{3, 4}, r.Returned)
	assert.Equal(t, "host-a", r.Queue)
	assert.False(t, b.IsIdle("worker-0"))
	close(release)
	r = must.Get(b.Run(t.Context(), closure.Batch{Calling: []uint64{2}}, true))(t)
	require.Len(t, r.Outcomes, 1)
	assertText(t, `"held"`, r.Outcomes[0])
	assert.Empty(t, b.calls)
}

// A returning batch leaves its call to the next one, which may cancel it.
func TestABatchEndsBeforeItsCall(t *testing.T) {
	m := newMachine(t, "worker-0")
	began, _ := held(m, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan closure.BatchResult, 1)
	go func() {
		r, err := m.now().Run(ctx, closure.Batch{Closures: []closure.Closure{calling(1, "hold")}}, false)
		assert.NoError(t, err)
		ended <- r
	}()
	<-began
	cancel()
	assert.Equal(t, []uint64{1}, (<-ended).Calling)
	r := must.Get(m.now().Run(t.Context(), closure.Batch{Calling: []uint64{1}, Grace: time.Minute}, true))(t)
	require.Len(t, r.Outcomes, 1)
	assertText(t, "cancelled CancelledError: "+closure.TextCancelled, r.Outcomes[0])
	r = must.Get(m.now().Run(t.Context(), closure.Batch{Calling: []uint64{1}}, true))(t)
	assert.Empty(t, r.Outcomes, "what the host does not know is given back")
}

// A host takes as many batches as it has slots. Calls that no shared batch awaits occupy some.
func TestAHostReservesItsSlots(t *testing.T) {
	m := newMachine(t, "worker-0")
	b := m.now()
	none, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Reserve(none), context.Canceled, "no process serves")
	began, release := held(m, 2)
	require.NoError(t, b.Reserve(t.Context()))
	require.NoError(t, b.Reserve(t.Context()))
	third := make(chan error, 1)
	go func() { third <- b.Reserve(t.Context()) }()
	b.Release()
	require.NoError(t, <-third)
	b.Release()
	b.Release()

	ctx, end := context.WithCancel(t.Context())
	go func() { _, _ = b.Run(ctx, closure.Batch{Closures: []closure.Closure{calling(1, "hold")}}, true) }()
	<-began
	require.NoError(t, b.Reserve(t.Context()))
	go func() { third <- b.Reserve(t.Context()) }()
	end()
	close(release)
	require.NoError(t, <-third, "the slot is free again")
}

// A process uses the answer to its newest request. A closure in a lost answer is called anyway.
func TestAnswersThatAreLost(t *testing.T) {
	m := newMachine(t, "worker-0")
	b := m.now()
	asks := func(in wire.ClosuresRequest) wire.ClosuresAnswer {
		in.Process, in.Slots = "p", 1
		return must.Get(b.Next(t.Context(), "worker-0", in))(t)
	}
	assert.Empty(t, asks(wire.ClosuresRequest{Seq: 1}).Closures)
	ended := make(chan closure.BatchResult, 1)
	go func() {
		r, err := b.Run(t.Context(), closure.Batch{
			Closures: []closure.Closure{using(calling(1, "f"), 1)}, Resources: testResources,
		}, true)
		assert.NoError(t, err)
		ended <- r
	}()
	lost := asks(wire.ClosuresRequest{Seq: 2, Free: 1, Wait: closure.MaxWait})
	require.Len(t, lost.Closures, 1)
	assert.Equal(t, lost, asks(wire.ClosuresRequest{Seq: 3, Free: 1, Wait: closure.MaxWait}))
	assert.Empty(t, asks(wire.ClosuresRequest{Seq: 2, Free: 1, Wait: closure.MaxWait}), "that is not the newest one")

	m.cancel(time.Minute, 1)
	again := wire.ClosuresRequest{Seq: 4, Held: []uint64{1}, Resources: []uint64{1}, Wait: closure.MaxWait}
	assert.Equal(t, wire.ClosuresAnswer{Cancel: []uint64{1}}, asks(again))
	again.Seq++
	assert.Equal(t, wire.ClosuresAnswer{Cancel: []uint64{1}}, asks(again))
	again.Seq, again.Ending, again.Wait = 6, []uint64{1}, 0
	assert.Empty(t, asks(again), "it knows")

	must.Get(b.Run(t.Context(), closure.Batch{Released: []uint64{1}}, true))(t)
	done := wire.ClosuresRequest{Seq: 7, Resources: []uint64{1}, Done: []closure.Outcome{{ID: 1, Value: []byte("8")}}}
	assert.Equal(t, wire.ClosuresAnswer{Released: []uint64{1}}, asks(done))
	done.Seq++
	assert.Equal(t, wire.ClosuresAnswer{Released: []uint64{1}}, asks(done))
	r := <-ended
	require.Len(t, r.Outcomes, 1)
	assertText(t, "8", r.Outcomes[0])
}
