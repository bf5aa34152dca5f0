package closures

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/tests/must"
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
			r := must.Get(h.Lease(t.Context(), closure.Lease{Closures: rest}))(t)
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
					b := must.Get(json.Marshal(r.Outcomes))(t)
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

// The only serving process has ended for good: closures that wait here are returned as not
// begun, so that another host may call them.
func TestWhatNobodyServesIsGivenBack(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		l := h.lease(closuresFrom(1, 3)...)
		require.Equal(t, []uint64{1}, p.take(1, 0))
		time.Sleep(settleAfter)
		h.ProcessEnded("worker-0", "")
		first := one(t, l.get(t))
		assert.Equal(t, lost(1, "worker-0", true), first)
		l = h.lease(closuresFrom(2, 2)...)
		time.Sleep(strandedAfter / 2)
		assert.True(t, l.waits(), "the task may be back")
		for i, o := range l.get(t).Outcomes {
			assert.Equal(t, closure.Outcome{ID: uint64(i) + 2, Kind: closure.OutcomeLost, Error: &closure.Error{
				Kind: closure.ErrLost, Message: "no task of this host serves f any more", Closure: uint64(i) + 2,
			}}, o)
		}
		assertEmpty(t, h)
	})
}

// A restarted task gets the closures that waited for it. A task that serves other functions
// gets none of them.
func TestWhoIsBackSoonHasWhatWaited(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		time.Sleep(settleAfter)
		p, other := h.process("worker-0", "a", 1), h.process("worker-1", "c", 1, "g")
		p.take(0, 0)
		waits := other.waiting(1)
		h.ProcessEnded("worker-0", "")
		l := h.lease(newClosure(1))
		time.Sleep(strandedAfter / 2)
		p = h.process("worker-0", "b", 1)
		require.Equal(t, []uint64{1}, p.take(1, 0))
		time.Sleep(2 * strandedAfter)
		assert.True(t, l.waits(), "it is called")
		p.done(value(1))
		assert.Equal(t, valued(1, "worker-0"), one(t, l.get(t)))
		h.Broker.Close()
		<-waits
	})
}

// Closures behind a long call are returned, so that another host may call them, except those
// that only a task of this host may call.
func TestWhatLiesBehindALongCallIsGivenBack(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		time.Sleep(settleAfter)
		p := h.process("worker-0", "a", 1)
		pinned := newClosure(3)
		pinned.Options = &closure.Options{Task: "worker-0"}
		l := h.lease(newClosure(1), newClosure(2), pinned)
		require.Equal(t, []uint64{1}, p.take(1, 0))
		assert.Equal(t, closure.LeaseResult{
			Outcomes: []closure.Outcome{{ID: 2, Kind: closure.OutcomeLost, Error: &closure.Error{
				Kind: closure.ErrLost, Message: "the tasks of this host are busy", Closure: 2,
			}}},
			Rest: []uint64{1, 3},
		}, l.get(t))
		l = h.lease(newClosure(1), pinned)
		time.Sleep(3 * strandedAfter)
		assert.True(t, l.waits())
		p.done(value(1))
		require.Equal(t, []uint64{3}, p.take(1, 0))
		p.done(value(3))
		l.get(t)
	})
}

// If the tasks of a host worker have ended while it was restarted, it reports that, once it has
// waited for them, because the queue still has the last report.
func TestTheFirstReportIsMadeAlsoOfNobody(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		l := h.lease(newClosure(1))
		time.Sleep(settleAfter + reportAfter)
		synctest.Wait()
		h.mu.Lock()
		require.Len(t, h.reports, 1)
		assert.Empty(t, h.reports[0])
		h.mu.Unlock()
		assert.Equal(t, closure.OutcomeLost, one(t, l.get(t)).Kind)
	})
}

// follow starts the next broker, which knows the processes that the previous one may have
// given closures to.
func (h *host) follow(earlier map[string][]string) {
	h.earlier = earlier
	h.start()
}

// Waiting closures are given out as soon as all earlier processes have reported their
// closures or have ended.
func TestASuccessorSettlesWithTheLastThatItAwaits(t *testing.T) {
	for name, last := range map[string]func(h *host, b *fake){
		"back":              func(_ *host, b *fake) { b.done() },
		"ended":             func(h *host, _ *fake) { h.ProcessEnded("worker-1", "b") },
		"its task has":      func(h *host, _ *fake) { h.ProcessEnded("worker-1", "") },
		"leaves in order":   func(_ *host, b *fake) { b.slots, b.held = 0, nil; b.done() },
		"nobody: a timeout": func(*host, *fake) { time.Sleep(settleAfter) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, h *host) {
				a, b := h.process("worker-0", "a", 1), h.process("worker-1", "b", 1)
				h.lease(closuresFrom(1, 2)...)
				require.Equal(t, []uint64{1}, a.take(1, 0))
				require.Equal(t, []uint64{2}, b.take(1, 0))
				h.follow(map[string][]string{"worker-0": {"a"}, "worker-1": {"b"}})
				begun := time.Now()
				h.lease(closuresFrom(1, 3)...)
				fresh := h.process("worker-2", "c", 2)
				assert.Empty(t, fresh.take(2, 0), "the others may have them")
				a.done(value(1))
				assert.Empty(t, fresh.take(2, 0), "worker-1 may have them")
				given := fresh.waiting(2)
				last(h, b)
				if name != "nobody: a timeout" {
					assert.Zero(t, time.Since(begun))
				}
				got := fresh.read(<-given)
				assert.Contains(t, got, uint64(3), "nobody had it")
				assert.Equal(t, name != "back", len(got) == 2, "worker-1 has closure 2 as long as it is there: %v", got)
			})
		})
	}
}

// If the processes of a task were not recorded, the broker waits for them.
func TestASuccessorThatKnowsNoProcessesWaits(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		a := h.process("worker-0", "a", 1)
		h.lease(closuresFrom(1, 1)...)
		require.Equal(t, []uint64{1}, a.take(1, 0))
		h.follow(map[string][]string{"worker-0": nil})
		begun := time.Now()
		h.lease(closuresFrom(1, 2)...)
		a.done(value(1))
		assert.Equal(t, []uint64{2}, a.take(1, 20))
		assert.Equal(t, settleAfter, time.Since(begun))
	})
}

// The serving processes are reported to the queue once all are back, rather than after the
// first of them.
func TestASuccessorReportsOnceItIsSettled(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		a, b := h.process("worker-0", "a", 1), h.process("worker-1", "b", 1)
		a.done()
		b.done()
		time.Sleep(reportAfter)
		synctest.Wait()
		h.follow(map[string][]string{"worker-0": {"a"}, "worker-1": {"b"}})
		h.reports = nil
		begun := time.Now()
		a.done()
		time.Sleep(settleAfter / 2)
		assert.Empty(t, h.said())
		b.done()
		time.Sleep(2 * reportAfter)
		require.Len(t, h.said(), 1)
		assert.Len(t, h.said()[0], 2)
		assert.Less(t, time.Since(begun), settleAfter)
	})
}

func (h *host) said() [][]closure.ServingTask {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reports
}

// Each function returns the number of its calls.
const pythonCounts = `
import itertools
calls = itertools.count(1)
@clusterrun.function
def f(n):
    if n == 0:
        return next(calls)
    next(calls)
    return n
clusterrun.serve(%d)
`

func goCounts() map[string]any {
	var calls atomic.Int64
	return map[string]any{"f": func(_ context.Context, n int64) (int64, error) {
		if count := calls.Add(1); n == 0 {
			return count, nil
		}
		return n, nil
	}}
}

// whoCounts runs a test with a process of each language, with one slot and with several.
func whoCounts(t *testing.T, test func(*testing.T, *machine)) {
	for _, slots := range []int{1, 3} {
		for name, start := range map[string]func(m *machine){
			"go":     func(m *machine) { m.goProcess("worker-0", slots, goCounts()) },
			"python": func(m *machine) { m.pyProcess("worker-0", fmt.Sprintf(pythonCounts, slots)) },
		} {
			t.Run(fmt.Sprint(name, " ", slots), func(t *testing.T) {
				m := newMachine(t, "worker-0")
				start(m)
				m.awaitServing(1)
				test(t, m)
			})
		}
	}
}

// Even if connections are cut often, each closure is called once, and no outcome is lost.
func TestNothingIsDoubledWhenConnectionsAreCut(t *testing.T) {
	whoCounts(t, func(t *testing.T, m *machine) {
		total := 0
		for round := range 15 {
			var list []closure.Closure
			for range 200 {
				total++
				list = append(list, call(uint64(total), "f", total))
			}
			outcomes := make(chan map[uint64]closure.Outcome, 1)
			go func() { outcomes <- m.all(list...) }()
			for cut := range 5 {
				time.Sleep(time.Duration(round*5+cut) * 100 * time.Microsecond)
				m.cut()
			}
			out := <-outcomes
			require.Len(t, out, len(list))
			for id, o := range out {
				assertText(t, fmt.Sprint(id), o)
			}
		}
		assertText(t, fmt.Sprint(total+1), m.one(call(1<<40, "f", 0)))
	})
}

// A process calls every closure it is given. If it overlooked one, it would hand it back, and
// the closure would be given again.
func TestNothingIsGivenTwice(t *testing.T) {
	whoCounts(t, func(t *testing.T, m *machine) {
		given := func() uint64 {
			b := m.now()
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.calls
		}
		before := given()
		for id := range uint64(200) {
			m.one(call(id+1, "f", 1))
		}
		// On a busy machine a few may be given again.
		assert.Less(t, given()-before, uint64(240))
	})
}

// An idle worker was given a closure just when it was frozen, and does not know it. Another
// worker calls the closure, and when the first thaws, its answer cancels the closure.
func TestAFrozenIdleWorkerDoesNotKeepAClosure(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		time.Sleep(settleAfter)
		frozen, other := h.process("worker-0", "a", 1), h.process("worker-1", "b", 1)
		answer := frozen.waiting(1)
		other.take(0, 0)
		l := h.lease(newClosure(1))
		assert.Zero(t, h.Executing([]uint64{1}), "nobody has said that it calls it")
		waits := other.waiting(1)
		time.Sleep(silentAfter - time.Millisecond)
		assert.Len(t, h.servingTasks(), 2)
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []uint64{1}, other.read(<-waits))
		assert.Equal(t, []closure.ServingTask{{Task: "worker-1", Process: "b", Slots: 1, Functions: []string{"f"}}}, h.servingTasks())
		other.take(0, 0)
		assert.Equal(t, 1, h.Executing([]uint64{1}))

		require.Equal(t, []uint64{1}, frozen.read(<-answer))
		in := frozen.request()
		in.Begun, in.Wait = []uint64{1}, 20
		a := frozen.send(in)
		frozen.read(a)
		assert.Equal(t, []taskapi.CallCancel{{ID: 1}}, a.Cancel)
		assert.Len(t, h.servingTasks(), 2)
		frozen.done(taskapi.CallOutcome{ID: 1, Kind: "cancelled"})
		other.done(value(1))
		assert.Equal(t, valued(1, "worker-1"), one(t, l.get(t)))

		l = h.lease(newClosure(2))
		require.Equal(t, []uint64{2}, frozen.take(1, 0), "it gets others")
		frozen.done(value(2))
		assert.Equal(t, valued(2, "worker-0"), one(t, l.get(t)))
		assertEmpty(t, h)
	})
}

// If no other process is on the host, another host gets the closure.
func TestAFrozenHostsOnlyWorkerGivesBack(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		time.Sleep(settleAfter)
		frozen := h.process("worker-0", "a", 1)
		frozen.waiting(1)
		l := h.lease(newClosure(1))
		time.Sleep(silentAfter + strandedAfter + time.Millisecond)
		synctest.Wait()
		o := one(t, l.get(t))
		assert.Equal(t, closure.OutcomeLost, o.Kind)
		assert.False(t, o.Started)
		assert.Empty(t, h.servingTasks())
	})
}

// A process that thaws before anyone else has the closure that was taken from it keeps it,
// and its outcome counts.
func TestAThawedWorkerKeepsWhatNobodyElseHas(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		time.Sleep(settleAfter)
		p, busy := h.process("worker-0", "a", 2), h.process("worker-1", "b", 1)
		busy.take(0, 0)
		answer := p.waiting(2)
		l := h.lease(closuresFrom(1, 2)...)
		require.Len(t, p.read(<-answer), 2)
		time.Sleep(silentAfter + time.Millisecond)
		synctest.Wait()
		a := p.done(value(1))
		assert.Empty(t, a.Cancel)
		assert.Equal(t, valued(1, "worker-0"), one(t, l.get(t)))
		l = h.lease(newClosure(2))
		p.done(value(2))
		assert.Equal(t, valued(2, "worker-0"), one(t, l.get(t)))
		assertEmpty(t, h)
	})
}

// No closure is taken from a process that has begun it, or that sends requests.
func TestABusyWorkerKeepsWhatItHasBegun(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		time.Sleep(settleAfter)
		p, other := h.process("worker-0", "a", 1), h.process("worker-1", "b", 1)
		l := h.lease(newClosure(1))
		require.Equal(t, []uint64{1}, p.take(1, 0))
		p.take(0, 0)
		time.Sleep(time.Hour)
		assert.Empty(t, other.take(1, 0))
		p.done(value(1))
		assert.Equal(t, valued(1, "worker-0"), one(t, l.get(t)))
	})
}
