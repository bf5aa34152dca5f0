package closures

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

func lost(id uint64, task string, started bool) closure.Outcome {
	return closure.Outcome{ID: id, Kind: closure.OutcomeLost, Task: task, Started: started, Error: &closure.Error{
		Kind: closure.ErrLost, Message: task + " has ended while it had the closure", Closure: id, Task: task,
	}}
}

// fast makes a process execute quick calls, so that it then gets many closures at once.
func (p *fake) fast() {
	p.h.t.Helper()
	p.take(0, 0)
	p.h.Broker.mu.Lock()
	defer p.h.Broker.mu.Unlock()
	p.h.processes[processKey{p.task, p.name}].learn("f", 1e-6)
}

func TestCallsOfAProcessThatEndsAreLost(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 2)
		other := h.process("worker-1", "b", 1)
		other.take(0, 0)
		l := h.lease(closuresFrom(1, 2)...)
		require.Equal(t, []uint64{1, 2}, p.take(2, 0))
		h.ProcessEnded("worker-0", "a")
		assert.Equal(t, []closure.Outcome{lost(1, "worker-0", true), lost(2, "worker-0", true)}, l.get(t).Outcomes)
		_, err := h.Next(t.Context(), "worker-0", p.request())
		require.ErrorIs(t, err, taskapi.ErrProcessEnded)
		// The next process of the task is a different one.
		l = h.lease(closuresFrom(1, 1)...)
		next := h.process("worker-0", "c", 1)
		require.Equal(t, []uint64{1}, next.take(1, 0))
		next.done(value(1))
		l.get(t)
	})
}

// The broker knows whether the last serving process of a task has ended in the middle of a
// call. The kernel or the host may be the first to report its end.
func TestTheCallThatAProcessEndedIn(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		l := h.lease(newClosure(7))
		require.Equal(t, []uint64{7}, p.take(1, 0))
		assert.Empty(t, h.ProcessEnded("worker-1", ""))
		assert.Empty(t, h.ProcessEnded("worker-0", "a"))
		assert.Equal(t, "closure 7 of f", h.ProcessEnded("worker-0", ""))
		assert.Empty(t, h.ProcessEnded("worker-0", ""))
		l.get(t)

		p = h.process("worker-0", "b", 1)
		l = h.lease(newClosure(8))
		require.Equal(t, []uint64{8}, p.take(1, 0))
		assert.Equal(t, "closure 8 of f", h.ProcessEnded("worker-0", ""))
		l.get(t)

		// Here the parent has started another process, which was idle.
		p = h.process("worker-0", "c", 1)
		l = h.lease(newClosure(9))
		require.Equal(t, []uint64{9}, p.take(1, 0))
		h.ProcessEnded("worker-0", "c")
		l.get(t)
		h.process("worker-0", "d", 1).take(1, 0)
		assert.Empty(t, h.ProcessEnded("worker-0", ""))

		// Here one process ended in a call, but another has left in order.
		p, leaves := h.process("worker-0", "e", 1), h.process("worker-0", "f", 1)
		leaves.take(0, 0)
		l = h.lease(newClosure(10))
		require.Equal(t, []uint64{10}, p.take(1, 0))
		h.ProcessEnded("worker-0", "e")
		l.get(t)
		last := leaves.request()
		last.Slots = 0
		leaves.send(last)
		assert.Empty(t, h.ProcessEnded("worker-0", ""))
	})
}

// Closures that a process did not begin are given to others. Because it is unknown which of
// them it was calling when it ended, none of them is given together with others again.
func TestWhatAProcessHadNotBegunIsPutBack(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p, q := h.process("worker-0", "a", 1), h.process("worker-1", "b", 1)
		p.fast()
		q.fast()
		l := h.lease(closuresFrom(1, 8)...)
		require.Equal(t, numbers(1, 4), p.take(1, 0))
		h.ProcessEnded("worker-0", "")
		assert.True(t, l.waits())
		var order []uint64
		for range 4 {
			got := q.take(1, 0)
			require.Len(t, got, 1)
			order = append(order, got...)
			q.done(quick(got[0]))
		}
		assert.Equal(t, numbers(1, 4), order)
		assert.Equal(t, numbers(5, 4), q.take(1, 0), "these are above suspicion")
	})
}

func TestTheClosureThatEndsItsProcessesIsFound(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		lostByName := map[uint64]int{}
		rest := closuresFrom(1, 20)
		for round := 0; len(rest) > 0; round++ {
			require.Less(t, round, 20)
			p := h.process("worker-0", string(rune('a'+round)), 1)
			p.fast()
			l := h.lease(rest...)
			for died := false; !died && l.waits(); {
				var outcomes []taskapi.CallOutcome
				for _, id := range p.take(1, 0) {
					if died = id == 13 && lostByName[13] < 3; died {
						h.ProcessEnded("worker-0", "")
						break
					}
					outcomes = append(outcomes, quick(id))
				}
				if !died {
					p.done(outcomes...)
				}
			}
			r := l.get(t)
			rest = nil
			for _, id := range r.Rest {
				rest = append(rest, closure.Closure{ID: id})
			}
			for _, o := range r.Outcomes {
				if o.Kind == closure.OutcomeLost {
					rest = append(rest, newClosure(o.ID))
					if o.Started {
						lostByName[o.ID]++
					}
				}
			}
			h.ProcessEnded("worker-0", "")
		}
		assert.Equal(t, map[uint64]int{13: 3}, lostByName, "nobody else is blamed")
	})
}

func TestWithoutOthersWhatWasNotBegunIsLostUnstarted(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		p.fast()
		h.process("worker-1", "b", 1, "g").take(0, 0)
		l := h.lease(newClosure(1), with(newClosure(2), closure.Options{Task: "worker-0"}), newClosure(3), newClosure(4))
		require.Equal(t, []uint64{1, 2}, p.take(1, 0), "half, because there are two that serve")
		in := p.request()
		in.Begun = []uint64{1}
		p.send(in)
		h.ProcessEnded("worker-0", "")
		assert.Equal(t, []closure.Outcome{lost(1, "worker-0", true), lost(2, "worker-0", false)}, l.get(t).Outcomes)
	})
}

// Closures behind a long call are handed back.
func TestClosuresAreHandedBack(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p, q := h.process("worker-0", "a", 1), h.process("worker-1", "b", 1)
		p.fast()
		l := h.lease(closuresFrom(1, 3)...)
		require.Equal(t, numbers(1, 3), p.take(1, 0))
		asked := q.waiting(1)
		in := p.report(quick(1))
		p.held = []uint64{2}
		in.Held, in.Begun, in.Returned = p.held, p.held, []uint64{3}
		p.send(in)
		assert.Equal(t, []uint64{3}, q.read(<-asked))
		// A repeated request has no effect: closure 3 belongs to another process now.
		p.send(in)
		q.done(value(3))
		assert.Equal(t, []uint64{1, 3}, ids(l.get(t).Outcomes))
	})
}

// A closure that was handed back may be given to the same process again. The old request does
// not hand it back a second time.
func TestWhatIsHandedBackMayComeAgain(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		l := h.lease(newClosure(1))
		require.Equal(t, []uint64{1}, p.take(1, 0))
		p.held = nil
		in := p.request()
		in.Returned, in.Free = []uint64{1}, 1
		a := p.send(in)
		require.Len(t, a.Closures, 1)
		assert.Equal(t, a, p.send(in), "the answer was lost")
		require.Equal(t, []uint64{1}, p.read(a))
		p.done(value(1))
		assert.Equal(t, []uint64{1}, ids(l.get(t).Outcomes))
	})
}

func TestAnswersThatAreLostAreRepeated(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		p.fast()
		resource := closure.Resource{ID: 4, Function: "load"}
		c := newClosure(2)
		c.Resources = []uint64{4}
		l := h.leaseAll(closure.Lease{Closures: []closure.Closure{newClosure(1), c, newClosure(3)}, Resources: []closure.Resource{resource}})
		in := p.request()
		in.Free = 1
		first := p.send(in)
		require.Len(t, first.Closures, 3)
		assert.Equal(t, []closure.Resource{{ID: 4, Function: "load"}}, first.Resources)
		assert.Equal(t, first, p.send(in), "the request again")
		assert.Equal(t, first, p.send(p.request()), "another one of a process that has not read the answer")
		h.Cancel(closure.CancelLease{Closures: []uint64{3}, Grace: time.Hour})
		again := p.send(p.request())
		assert.Equal(t, []taskapi.CallCancel{{ID: 3}}, again.Cancel)
		again.Cancel = nil
		assert.Equal(t, first, again)
		require.Equal(t, numbers(1, 3), p.read(first))

		// An outcome that is sent twice counts once, and for no other call.
		report := p.report(quick(2), quick(1), failed(3, "ValueError", "no"))
		p.send(report)
		r := l.get(t)
		assert.Equal(t, []uint64{2, 1, 3}, ids(r.Outcomes))
		p.send(report)
		assertEmpty(t, h)
	})
}

// An outcome counts only for its own call, even if the closure was given to the same process
// again since.
func TestAnOutcomeIsThatOfItsCall(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		away := func(message string) taskapi.CallOutcome {
			return taskapi.CallOutcome{ID: 1, Kind: "unavailable", Error: &closure.Error{Message: message}}
		}
		l := h.lease(newClosure(1))
		require.Equal(t, []uint64{1}, p.take(1, 0))
		first := p.report(away("first"))
		p.send(first)
		assert.Equal(t, "first", one(t, l.get(t)).Error.Message)
		l = h.lease(newClosure(1))
		p.send(first)
		require.Equal(t, []uint64{1}, p.take(1, 0))
		p.send(first)
		assert.True(t, l.waits())
		p.done(away("second"))
		assert.Equal(t, "second", one(t, l.get(t)).Error.Message)
	})
}

// Of a request that arrives late, only the outcomes and the closures handed back count.
func TestAnOldRequestDoesNotSayHowTheProcessStands(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 2)
		p.fast()
		l := h.lease(closuresFrom(1, 3)...)
		require.Equal(t, []uint64{1, 2, 3}, p.take(2, 0))
		old := p.report(value(1))
		old.Held, old.Free, old.Wait, old.Returned = nil, 1, 20, []uint64{3}
		p.held = []uint64{1, 2, 3} // the process does not know yet that the rest has arrived
		listening := p.waiting(0)
		at := time.Now()
		assert.Empty(t, p.send(old))
		assert.Zero(t, time.Since(at))
		assert.Empty(t, listening, "it goes on")
		assert.Equal(t, []uint64{3}, h.process("worker-1", "b", 1).take(1, 0))
		longLater()
		assert.Equal(t, closure.LeaseResult{Outcomes: []closure.Outcome{valued(1, "worker-0")}, Rest: []uint64{2, 3}}, l.get(t))
		p.held = []uint64{2}
		// A newer request ends the wait of the older one.
		p.waiting(0)
		assert.Equal(t, taskapi.ClosuresAnswer{}, <-listening)
	})
}

func TestAProcessThatDoesNotKnowItsClosureIsBelieved(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p, q := h.process("worker-0", "a", 1), h.process("worker-1", "b", 1)
		h.lease(newClosure(1))
		require.Equal(t, []uint64{1}, p.take(1, 0))
		p.held = nil
		p.take(0, 0)
		assert.Equal(t, []uint64{1}, q.take(1, 0))
	})
}

func TestAProcessThatLeaves(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 2)
		l := h.lease(closuresFrom(1, 2)...)
		require.Len(t, p.take(2, 0), 2)
		p.slots = 0
		assert.Empty(t, p.take(2, 0))
		in := p.report(value(1))
		p.held, in.Held, in.Returned = nil, nil, []uint64{2}
		assert.Empty(t, p.send(in))
		q := h.process("worker-0", "b", 1)
		require.Equal(t, []uint64{2}, q.take(1, 0))
		q.done(value(2))
		assert.Equal(t, closure.LeaseResult{Outcomes: []closure.Outcome{valued(1, "worker-0")}, Rest: []uint64{2}}, l.get(t))
		assert.Equal(t, []uint64{2}, ids(h.lease(newClosure(2)).get(t).Outcomes))
		_, err := h.Next(t.Context(), "worker-0", in)
		require.ErrorIs(t, err, taskapi.ErrProcessEnded)
	})
}

func TestWhoServesIsReported(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		last := func() []closure.ServingTask {
			time.Sleep(reportAfter)
			synctest.Wait()
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.reports[len(h.reports)-1]
		}
		p, q := h.process("worker-1", "a", 2, "g", "f"), h.process("worker-0", "b", 1)
		in := p.request()
		in.Functions = nil
		assert.True(t, p.send(in).Introduce)
		p.take(0, 0)
		q.take(0, 0)
		both := []closure.ServingTask{
			{Task: "worker-0", Process: "b", Slots: 1, Functions: []string{"f"}},
			{Task: "worker-1", Process: "a", Slots: 2, Functions: []string{"f", "g"}},
		}
		assert.Equal(t, both, last())
		assert.Len(t, h.reports, 1, "what changes together is one report")
		p.functions = nil
		p.take(0, 0)
		assert.Equal(t, both, last())
		assert.Len(t, h.reports, 1, "nothing has changed")
		q.functions = []string{"f", "h"}
		q.take(0, 0)
		assert.Equal(t, []string{"f", "h"}, last()[0].Functions)
		h.ProcessEnded("worker-1", "")
		assert.Len(t, last(), 1)
		q.slots = 0
		q.take(0, 0)
		assert.Empty(t, last())
	})
}

// The host was killed, and the processes continue with their closures.
func TestABrokerThatFollowsAnother(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p, q := h.process("worker-0", "a", 3), h.process("worker-1", "b", 1)
		h.lease(closuresFrom(1, 5)...)
		require.Equal(t, numbers(1, 3), p.take(3, 0))
		require.Equal(t, []uint64{4}, q.take(1, 0))
		time.Sleep(time.Second)

		h.start()
		again := make([]closure.Closure, 5)
		copy(again, closuresFrom(1, 5))
		asked := p.report(value(1), failed(2, "ValueError", "no"))
		asked.Functions = nil
		assert.True(t, p.send(asked).Introduce)
		p.take(0, 0)
		l := h.lease(again...)
		r := l.get(t)
		assert.Equal(t, []uint64{1, 2}, ids(r.Outcomes), "these were kept for the lease")
		assert.Equal(t, closure.OutcomeError, r.Outcomes[1].Kind)
		assert.Equal(t, numbers(3, 3), r.Rest)
		l = h.lease(again[2:]...)

		fresh := h.process("worker-2", "c", 3)
		waits := fresh.waiting(3)
		time.Sleep(settleAfter / 2)
		synctest.Wait()
		assert.Empty(t, waits, "4 and 5 may be somebody's")
		assert.Empty(t, h.reports[1:], "and others may come back")
		q.take(0, 0)
		assert.Equal(t, []uint64{5}, fresh.read(<-waits))
		time.Sleep(reportAfter)
		synctest.Wait()
		assert.Len(t, h.reports, 2)
		assert.Len(t, h.reports[1], 3)

		p.done(value(3))
		q.done(value(4))
		assert.Equal(t, numbers(3, 2), ids(l.get(t).Outcomes))
		fresh.done(value(5))
		assert.Equal(t, []uint64{5}, ids(h.lease(again[4]).get(t).Outcomes))
		assertEmpty(t, h)
	})
}

// A closure that a process brought along is called again if the process ends before a lease
// has named it, and it can be cancelled.
func TestClosuresOfAnEarlierBroker(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 2)
		p.seq, p.got, p.held = 7, 3, []uint64{1, 2, 3}
		in := p.request()
		in.Begun = []uint64{1, 2}
		p.send(in)
		h.Cancel(closure.CancelLease{Closures: []uint64{2}, Grace: time.Hour})
		a := p.send(p.request())
		assert.Equal(t, []taskapi.CallCancel{{ID: 2}}, a.Cancel)
		p.read(a)
		h.ProcessEnded("worker-0", "")
		l := h.lease(closuresFrom(1, 3)...)
		assert.Equal(t, []closure.Outcome{lost(1, "worker-0", true), wasCancelled(2, "worker-0")}, l.get(t).Outcomes)
		assert.Equal(t, []uint64{3}, func() []uint64 {
			q := h.process("worker-0", "b", 1)
			return q.take(1, 20)
		}())
	})
}
