package closures

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

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
