package closures

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

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
