package closures

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

func TestALoneClosureReturnsAtOnce(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		asked := p.waiting(1)
		l := h.lease(closure.Closure{ID: 7, Function: "f", Args: json.RawMessage(`[1]`), Kwargs: json.RawMessage(`{"x":2}`), Attempt: 3})
		a := <-asked
		require.Len(t, a.Closures, 1)
		call := a.Closures[0].Call
		assert.Equal(t, []taskapi.Call{{Call: call, Closure: closure.Closure{ID: 7, Function: "f", Args: json.RawMessage(`[1]`), Kwargs: json.RawMessage(`{"x":2}`), Attempt: 3}}}, a.Closures)
		p.read(a)
		longLater()
		in := p.report(value(7))
		in.Free, in.Wait = 1, 20
		at := time.Now()
		go func() { _, _ = h.Next(t.Context(), "worker-0", in) }()
		r := l.get(t)
		assert.Zero(t, time.Since(at))
		assert.Equal(t, closure.LeaseResult{Outcomes: []closure.Outcome{valued(7, "worker-0")}, Idle: true}, r)
		assertEmpty(t, h)
	})
}

func TestAnEmptyLeaseReturns(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		assert.Equal(t, closure.LeaseResult{}, h.lease().get(t))
	})
}

// A long call holds back nothing, neither in its lease nor in its process.
func TestALongClosureHoldsNothingBack(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p, q := h.process("worker-0", "a", 1), h.process("worker-1", "b", 1)
		l := h.lease(closuresFrom(1, 3)...)
		require.Equal(t, []uint64{1}, p.take(1, 0))
		longLater()
		require.Equal(t, []uint64{2}, q.take(1, 0))
		at := time.Now()
		in := q.report(value(2))
		in.Free = 1
		require.Equal(t, []uint64{3}, q.read(q.send(in)))
		// Closure 3 has just begun, so it may end soon, too.
		assert.Equal(t, closure.LeaseResult{Outcomes: []closure.Outcome{valued(2, "worker-1")}, Rest: []uint64{1, 3}}, l.get(t))
		assert.Equal(t, soon, time.Since(at))

		longLater()
		l = h.lease(closure.Closure{ID: 1}, closure.Closure{ID: 3})
		at = time.Now()
		q.done(value(3))
		assert.Equal(t, []uint64{3}, ids(l.get(t).Outcomes))
		assert.Zero(t, time.Since(at))

		// If all the other closures take long, the lease does not wait for them.
		r := h.process("worker-2", "c", 3)
		l = h.lease(closuresFrom(4, 3)...)
		require.Equal(t, numbers(4, 3), r.take(3, 0))
		longLater()
		at = time.Now()
		r.done(value(5))
		assert.Equal(t, []uint64{5}, ids(l.get(t).Outcomes))
		assert.Zero(t, time.Since(at))
	})
}

// A flood of outcomes is returned in hundreds, not one by one.
func TestAFloodReturnsInHundreds(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		rest := closuresFrom(1, 1000)
		leases, returned := 0, 0
		working := make(chan struct{})
		send := func(in taskapi.ClosuresRequest) taskapi.ClosuresAnswer {
			a, err := h.Next(t.Context(), p.task, in)
			assert.NoError(t, err)
			return a
		}
		go func() {
			defer close(working)
			var outcomes []taskapi.CallOutcome
			for total := 0; total < 1000; {
				in := p.report(outcomes...)
				in.Free, in.Wait = 1, 20
				got := p.read(send(in))
				outcomes = outcomes[:0]
				for _, id := range got {
					time.Sleep(20 * time.Microsecond)
					outcomes = append(outcomes, quick(id))
				}
				total += len(got)
			}
			send(p.report(outcomes...))
		}()
		for len(rest) > 0 {
			r, err := h.Lease(t.Context(), closure.Lease{Closures: rest})
			require.NoError(t, err)
			leases++
			returned += len(r.Outcomes)
			rest = nil
			for _, id := range r.Rest {
				rest = append(rest, closure.Closure{ID: id})
			}
		}
		<-working
		assert.Equal(t, 1000, returned)
		assert.LessOrEqual(t, leases, 5)
		assertEmpty(t, h)
	})
}

// A result is measured as JSON in the history, where some characters take six bytes.
func TestAResultIsBounded(t *testing.T) {
	const n = 32
	text := func(sign string, bytes int) string { return strings.Repeat(sign, bytes) }
	value := func(text string) taskapi.CallOutcome {
		return taskapi.CallOutcome{Value: json.RawMessage(`"` + text + `"`)}
	}
	for name, o := range map[string]taskapi.CallOutcome{
		"plain":      value(text("x", closure.MaxBytes-2)),
		"angles":     value(text("<", closure.MaxBytes/6-2)),
		"separators": value(text("\u2028", closure.MaxBytes/6-2)),
		"errors": {Kind: "error", Error: &closure.Error{
			Kind: text("<", 1000), Task: text("&", 1000), Message: text("\x00", closure.MaxError), Traceback: text("<", closure.MaxTraceback),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, h *host) {
				p := h.process("worker-0", "a", n)
				l := h.lease(closuresFrom(1, n)...)
				require.Len(t, p.take(n, 0), n)
				outcomes := make([]taskapi.CallOutcome, n)
				for i := range outcomes {
					outcomes[i] = o
					outcomes[i].ID = uint64(i) + 1
				}
				p.done(outcomes...)
				var got []uint64
				for len(got) < n {
					r := l.get(t)
					b, err := json.Marshal(r.Outcomes)
					require.NoError(t, err)
					assert.LessOrEqual(t, len(b), closure.MaxBatchBytes)
					got = append(got, ids(r.Outcomes)...)
					var rest []closure.Closure
					for _, id := range r.Rest {
						rest = append(rest, closure.Closure{ID: id})
					}
					l = h.lease(rest...)
				}
				assert.Equal(t, numbers(1, n), got)
				assertEmpty(t, h)
			})
		})
	}
}

// The end of a lease ends no call, and the next lease takes over.
func TestALeaseThatEndsLeavesItsClosures(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		first := h.lease(closuresFrom(1, 3)...)
		require.Equal(t, []uint64{1}, p.take(1, 0))
		first.cancel()
		<-first.done
		require.ErrorIs(t, first.err, context.Canceled)

		assert.Empty(t, p.done(value(1)).Cancel)
		require.Equal(t, []uint64{2}, p.take(1, 0), "what waits is called, too")
		longLater()
		second := h.lease(closuresFrom(1, 3)...)
		assert.Equal(t, closure.LeaseResult{Outcomes: []closure.Outcome{valued(1, "worker-0")}, Rest: []uint64{2, 3}}, second.get(t))
		third := h.lease(closure.Closure{ID: 2}, closure.Closure{ID: 3})
		fourth := h.lease(closure.Closure{ID: 2})
		p.done(value(2))
		assert.Equal(t, []uint64{2}, ids(fourth.get(t).Outcomes), "the last lease that names a closure has it")
		require.Equal(t, []uint64{3}, p.take(1, 0))
		p.done(value(3))
		assert.Equal(t, []uint64{3}, ids(third.get(t).Outcomes))
		assertEmpty(t, h)
	})
}

func TestWhatNoLeaseAsksForIsForgotten(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		l := h.lease(append(closuresFrom(1, 4), with(newClosure(5), closure.Options{Task: "worker-9"}))...)
		require.Equal(t, []uint64{1}, p.take(1, 0))
		p.done(value(1))
		require.Equal(t, []uint64{2}, p.take(1, 0))
		p.done(value(2))
		require.Equal(t, []uint64{3}, p.take(1, 0))
		require.Equal(t, []uint64{1, 2}, ids(l.get(t).Outcomes))
		p.done(value(3))
		require.Equal(t, []uint64{4}, p.take(1, 0))
		p.take(0, 0) // the process has begun it

		time.Sleep(keptFor - time.Millisecond)
		l = h.lease(closure.Closure{ID: 3})
		require.Equal(t, []uint64{3}, ids(l.get(t).Outcomes))
		l = h.lease(closure.Closure{ID: 5})
		l.cancel()
		<-l.done
		time.Sleep(2 * time.Millisecond)
		assert.Equal(t, []uint64{4, 5}, h.held(), "5 was asked for again, and 4 is being called")
		time.Sleep(keptFor)
		assert.Equal(t, []uint64{4}, h.held())
		p.done(value(4))
		time.Sleep(keptFor - time.Millisecond)
		assert.Equal(t, []uint64{4}, h.held())
		time.Sleep(2 * time.Millisecond)
		assertEmpty(t, h)
	})
}

// held returns the closures that the broker holds.
func (h *host) held() []uint64 {
	h.Broker.mu.Lock()
	defer h.Broker.mu.Unlock()
	return slices.Sorted(maps.Keys(h.entries))
}

// If a lease is lost with its result, the next one names the same closures.
func TestAResultThatWasLostIsReturnedAgain(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 2)
		l := h.lease(closuresFrom(1, 2)...)
		require.Equal(t, []uint64{1, 2}, p.take(2, 0))
		p.done(value(1), failed(2, "ValueError", "no"))
		want := l.get(t)
		require.Len(t, want.Outcomes, 2)
		l = h.lease(closuresFrom(1, 2)...)
		assert.Equal(t, want, l.get(t))
		assert.Empty(t, p.take(2, 0), "nothing is called twice for that")

		// A closure that did not end comes back to be called again.
		l = h.lease(closure.Closure{ID: 3, Function: "f", Attempt: 1})
		require.Equal(t, []uint64{3}, p.take(2, 0))
		unavailable := taskapi.CallOutcome{ID: 3, Kind: "unavailable", Error: &closure.Error{Message: "gone"}}
		p.done(unavailable)
		assert.Equal(t, closure.OutcomeUnavailable, one(t, l.get(t)).Kind)
		l = h.lease(closure.Closure{ID: 3, Function: "f", Attempt: 2})
		require.Equal(t, []uint64{3}, p.take(2, 0))
		p.done(unavailable)
		assert.Equal(t, closure.OutcomeUnavailable, one(t, l.get(t)).Kind)
	})
}

func TestWhatIsKeptOfResultsIsBounded(t *testing.T) {
	var d delivered
	for id := range uint64(100) {
		d.add(closure.Outcome{ID: id, Value: make(json.RawMessage, closure.MaxBytes)})
	}
	assert.LessOrEqual(t, d.bytes, maxDelivered)
	assert.Len(t, d.outcomes, len(d.order))
	assert.NotContains(t, d.outcomes, uint64(0))
	assert.Contains(t, d.outcomes, uint64(99))
}

func TestClosingEndsLeases(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		asked := h.process("worker-0", "a", 1).waiting(1)
		l := h.lease(with(newClosure(1), closure.Options{Task: "worker-9"}))
		h.Close()
		<-l.done
		require.ErrorIs(t, l.err, ErrClosed)
		_, answered := <-asked
		assert.False(t, answered)
		_, err := h.Next(t.Context(), "worker-0", taskapi.ClosuresRequest{Process: "a", Seq: 9})
		require.ErrorIs(t, err, taskapi.ErrClosuresAway)
		_, err = h.Broker.Lease(t.Context(), closure.Lease{})
		require.ErrorIs(t, err, ErrClosed)
	})
}
