package closures

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
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

func (h *host) cancel(ids ...uint64) {
	h.Cancel(closure.CancelLease{Closures: ids, Grace: 3 * time.Second})
}

// settles waits until the broker no longer waits for a process of an earlier one.
func settles() {
	time.Sleep(settleAfter)
	synctest.Wait()
}

// A cancellation and a lease arrive by two activities, and either may be the first.
func TestACancellationMayComeBeforeItsLease(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		settles()
		h.cancel(1, 2)
		l := h.lease(closuresFrom(1, 3)...)
		assert.Equal(t, []uint64{3}, h.process("worker-0", "a", 3).take(3, 0))
		r := l.get(t)
		assert.Equal(t, []closure.Outcome{wasCancelled(1, ""), wasCancelled(2, "")}, r.Outcomes)
		assert.Equal(t, []uint64{3}, r.Rest)
	})
}

// A lease names its cancelled closures, so that a broker that did not receive the cancellation
// cancels them as well.
func TestALeaseNamesWhatWasCancelled(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		settles()
		p := h.process("worker-0", "a", 1)
		l := h.lease(newClosure(1))
		require.Equal(t, []uint64{1}, p.take(1, 0))
		l.cancel()
		<-l.done
		listening := p.waiting(0)
		l = h.leaseAll(closure.Lease{Closures: closuresFrom(1, 2), Cancelled: []uint64{1, 2}, Grace: 3 * time.Second})
		assert.Equal(t, []taskapi.CallCancel{{ID: 1}}, (<-listening).Cancel)
		assert.Equal(t, closure.LeaseResult{Outcomes: []closure.Outcome{wasCancelled(2, "")}, Rest: []uint64{1}}, l.get(t))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"worker-0"}, h.restarts(), "as after any other cancellation")
		l = h.leaseAll(closure.Lease{Closures: closuresFrom(1, 1), Cancelled: []uint64{1}, Grace: 3 * time.Second})
		h.ProcessEnded("worker-0", "")
		assert.Equal(t, []closure.Outcome{wasCancelled(1, "worker-0")}, l.get(t).Outcomes)
	})
}

// A closure that is cancelled before the processes of an earlier broker are back may still be
// running in one of them. It then ends when that call ends, but no earlier (SEED-58).
func TestWhatAnEarlierBrokerGaveIsCancelledThere(t *testing.T) {
	for name, tell := range map[string]func(h *host) *leasing{
		"first": func(h *host) *leasing { h.cancel(1, 2); return h.lease(closuresFrom(1, 2)...) },
		"then":  func(h *host) *leasing { l := h.lease(closuresFrom(1, 2)...); h.cancel(1, 2); return l },
		"inside": func(h *host) *leasing {
			return h.leaseAll(closure.Lease{Closures: closuresFrom(1, 2), Cancelled: []uint64{1, 2}, Grace: 3 * time.Second})
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, h *host) {
				p := h.process("worker-0", "a", 1)
				h.lease(closuresFrom(1, 2)...)
				require.Equal(t, []uint64{1}, p.take(1, 0))
				h.start()
				l := tell(h)
				assert.True(t, l.waits(), "a process may have them")
				in := p.request()
				in.Wait = 20
				a := p.send(in)
				assert.Equal(t, []taskapi.CallCancel{{ID: 1}}, a.Cancel)
				p.read(a)
				r := l.get(t)
				assert.Equal(t, []closure.Outcome{wasCancelled(2, "")}, r.Outcomes, "nobody had it")
				l = h.lease(newClosure(1))
				time.Sleep(3*time.Second - settleAfter)
				synctest.Wait()
				assert.Equal(t, []string{"worker-0"}, h.restarts(), "3 s after it was told")
				p.done(taskapi.CallOutcome{ID: 1, Kind: "cancelled"})
				assert.Equal(t, []closure.Outcome{wasCancelled(1, "worker-0")}, l.get(t).Outcomes)
				assertEmpty(t, h)
			})
		})
	}
}

// A process may be back before any lease names its closure, and its call may be over by then.
func TestAProcessMayBeBackBeforeTheCancelledClosureIs(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 2)
		h.lease(closuresFrom(1, 2)...)
		require.Equal(t, []uint64{1, 2}, p.take(2, 0))
		h.start()
		h.cancel(1, 2)
		a := p.done(value(2))
		assert.Equal(t, []taskapi.CallCancel{{ID: 1}}, a.Cancel)
		p.read(a)
		p.done(taskapi.CallOutcome{ID: 1, Kind: "cancelled"})
		assert.Equal(t, []closure.Outcome{wasCancelled(1, "worker-0"), valued(2, "worker-0")}, h.lease(closuresFrom(1, 2)...).get(t).Outcomes)
		assertEmpty(t, h)
	})
}

// The number of remembered cancellations of unknown closures is bounded.
func TestEarlyCancellationsAreBounded(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		settles()
		for id := range uint64(2 * maxCancelled) {
			h.cancel(id + 1)
		}
		assert.LessOrEqual(t, len(h.cancelled.has), maxCancelled)
		last := uint64(2 * maxCancelled)
		assert.Equal(t, []closure.Outcome{wasCancelled(last, "")}, h.lease(newClosure(last)).get(t).Outcomes)
	})
}

// stop tells the tasks to stop together.
func (m *machine) stop() {
	m.server.SetStopping(runkey.Run{}, spec.Stopping{Seq: 1, Stop: true})
}

// noStops is for tests in which no task requests a stop.
type noStops struct{ taskapi.Stops }

// queued leases n closures of the function hold.
func (m *machine) queued(n int) (outcomes func() []closure.Outcome) {
	m.t.Helper()
	out := make(chan closure.LeaseResult, n)
	ctx, cancel := context.WithCancel(m.t.Context())
	m.t.Cleanup(cancel)
	var in closure.Lease
	for i := range n {
		in.Closures = append(in.Closures, call(uint64(i+1), "hold", "hold-"+strconv.Itoa(i+1)))
	}
	go func() {
		r, err := m.now().Lease(ctx, in)
		if err == nil {
			out <- r
		}
	}()
	return func() []closure.Outcome { return (<-out).Outcomes }
}

// Serving tasks stop together with the others: idle ones at once, and busy ones after their
// calls, whose values count.
func TestGoStopsTogether(t *testing.T) {
	m := newMachine(t, "worker-0", "worker-1")
	began, goOn := make(chan bool, 9), make(chan bool)
	functions := map[string]any{"hold": func(_ context.Context, s string) (string, error) { began <- true; <-goOn; return s, nil }}
	busy := m.goProcess("worker-0", 2, functions)
	m.awaitServing(1)
	outcomes := m.queued(2)
	<-began
	<-began
	idle := m.goProcess("worker-1", 1, functions)
	m.awaitServing(2)
	m.stop()
	require.NoError(t, <-idle.ended)
	m.awaitServing(0)
	select {
	case err := <-busy.ended:
		t.Fatal("it is busy, and has ended", err)
	default:
	}
	close(goOn)
	require.NoError(t, <-busy.ended)
	var values []string
	for _, o := range outcomes() {
		values = append(values, string(o.Value))
	}
	assert.ElementsMatch(t, []string{`"hold-1"`, `"hold-2"`}, values)
	// A process that begins to serve while the others stop ends at once.
	late := m.goProcess("worker-0", 1, functions)
	require.NoError(t, <-late.ended)
}

func TestPythonStopsTogether(t *testing.T) {
	for _, slots := range []int{1, 3} {
		t.Run(strconv.Itoa(slots)+" slots", func(t *testing.T) {
			m := newMachine(t, "worker-0", "worker-1")
			source := `
@clusterrun.function
def hold(name):
    print(name, flush=True)
    while not os.path.exists("` + m.state + `/go"):
        time.sleep(0.01)
    return name
clusterrun.serve(` + strconv.Itoa(slots) + `)
print("over", flush=True)
`
			busy := m.pyProcess("worker-0", source)
			m.awaitServing(1)
			outcomes := m.queued(slots)
			var names []string
			for range slots {
				names = append(names, busy.line())
			}
			idle := m.pyProcess("worker-1", source, "TF_COORDINATOR_SCHEDULE_START_DELAY=1000", "CLUSTERRUN_TASK_INDEX=1")
			m.stop()
			assert.Equal(t, "over", idle.line())
			code, stderr := idle.end()
			assert.Zero(t, code, stderr)
			m.awaitServing(0)
			require.NoError(t, os.WriteFile(m.state+"/go", nil, 0o644))
			assert.Equal(t, "over", busy.line())
			code, stderr = busy.end()
			assert.Zero(t, code, stderr)
			assert.Empty(t, m.now().ProcessEnded("worker-0", ""), "it has left in order")
			var values []string
			for _, o := range outcomes() {
				name := must.JSON[string](t, o.Value)
				values = append(values, name)
			}
			assert.ElementsMatch(t, names, values)
		})
	}
}

func TestOneIsGivenWhereNobodyKnowsHowLongItTakes(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		h.lease(closuresFrom(1, 1000)...)
		p := h.process("worker-0", "a", 1)
		assert.Len(t, p.take(1, 0), 1)
		assert.Len(t, h.process("worker-1", "b", 3).take(3, 0), 3, "one for each slot")
	})
}

// A process is given about 20 ms of work, and at most a fair share.
func TestBatchesFollowHowLongCallsTake(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		for first := range uint64(20) {
			h.lease(closuresFrom(1+1000*first, 1000)...)
		}
		p := h.process("worker-0", "a", 1)
		taking := func(seconds float64) int {
			for range 60 {
				var outcomes []taskapi.CallOutcome
				for _, id := range p.held {
					o := value(id)
					o.Seconds = seconds
					outcomes = append(outcomes, o)
				}
				in := p.report(outcomes...)
				in.Free = 1
				p.read(p.send(in))
			}
			return len(p.held)
		}
		assert.InDelta(t, 10, taking(0.002), 1)
		assert.Equal(t, 1, taking(0.02))
		assert.Equal(t, 1, taking(0.03))
		assert.Equal(t, maxCalls, taking(1e-6))
	})
}

func TestASmallRestIsShared(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		var all []*fake
		for _, name := range []string{"a", "b", "c"} {
			p := h.process("worker-"+name, name, 1)
			p.fast()
			all = append(all, p)
		}
		h.lease(closuresFrom(1, 6)...)
		assert.Len(t, all[0].take(1, 0), 2)
		assert.Len(t, all[1].take(1, 0), 1)
		assert.Len(t, all[2].take(1, 0), 1)
	})
}

// If a process does not report how long a call took, the broker measures it.
func TestTimesAreMeasuredWhereTheyAreNotTold(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		h.lease(closuresFrom(1, 100)...)
		p := h.process("worker-0", "a", 1)
		require.Len(t, p.take(1, 0), 1)
		time.Sleep(5 * time.Millisecond)
		p.done(taskapi.CallOutcome{ID: 1})
		assert.Len(t, p.take(1, 0), 4)
	})
}

func TestOrderAndPlace(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		mine := closure.Options{Task: "worker-0"}
		h.lease(newClosure(4), with(newClosure(1), mine), newClosure(2), with(newClosure(3), mine), closure.Closure{ID: 5, Function: "g"})
		p, q := h.process("worker-0", "a", 9, "f", "g"), h.process("worker-1", "b", 9)
		assert.Equal(t, []uint64{2, 4}, q.take(9, 0))
		assert.Equal(t, []uint64{1, 3, 5}, p.take(9, 0))
	})
}

func TestLargeArgumentsAreNotGivenTogether(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		large := json.RawMessage(`["` + strings.Repeat("x", closure.MaxBytes-4) + `"]`)
		list := closuresFrom(1, 5)
		for i := range list {
			list[i].Args = large
		}
		h.lease(list...)
		assert.Len(t, h.process("worker-0", "a", 9).take(9, 0), 2)
	})
}

// A closure of a function that no process has registered is given to any process, which reports
// it as unknown. While a task that had registered it is away, the closure waits for the task.
func TestUnknownFunctions(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		p.take(0, 0)
		q := h.process("worker-1", "b", 9, "g")
		waits := q.waiting(9)
		h.lease(newClosure(1), closure.Closure{ID: 2, Function: "h"}, with(closure.Closure{ID: 3, Function: "g"}, closure.Options{Task: "worker-0"}))
		h.ProcessEnded("worker-0", "")
		assert.Empty(t, waits)
		time.Sleep(settleAfter)
		synctest.Wait()
		assert.Equal(t, []uint64{2}, q.read(<-waits))
		assert.Empty(t, q.take(8, 0))
		p = h.process("worker-0", "c", 2)
		assert.Equal(t, []uint64{1, 3}, p.take(2, 0), "worker-0 has no g, and nobody else may call 3")
	})
}

func TestResourcesAreToldOnce(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		list := closuresFrom(1, 3)
		for i := range list {
			list[i].Resources = []uint64{8, 9}
		}
		h.leaseAll(closure.Lease{Closures: list, Resources: []closure.Resource{{ID: 8, Function: "x"}, {ID: 9, Function: "y"}, {ID: 10, Function: "z"}}})
		in := p.request()
		in.Free = 1
		a := p.send(in)
		assert.Equal(t, []closure.Resource{{ID: 8, Function: "x"}, {ID: 9, Function: "y"}}, a.Resources)
		p.read(a)
		in = p.report(value(1))
		in.Free = 1
		a = p.send(in)
		assert.Equal(t, []uint64{2}, p.read(a))
		assert.Empty(t, a.Resources)
		q := h.process("worker-1", "b", 1)
		in = q.request()
		in.Free = 1
		assert.Len(t, q.send(in).Resources, 2)
	})
}

// Every slot gets a closure for any number of slots: sums of fractions are not exact.
func TestAllSlotsAreFilled(t *testing.T) {
	for slots := 1; slots <= 100; slots++ {
		run(t, func(t *testing.T, h *host) {
			h.lease(closuresFrom(1, slots)...)
			require.Len(t, h.process("worker-0", "a", slots).take(slots, 0), slots)
		})
	}
}
