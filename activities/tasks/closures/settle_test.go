package closures

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

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
