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
