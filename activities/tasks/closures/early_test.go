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
