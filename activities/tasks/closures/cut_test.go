package closures

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

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
