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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// A process gets everything about a closure but its task.
func TestWhatAProcessGets(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		c := closure.Closure{ID: 7, Function: "f", Args: json.RawMessage(`[1]`), Kwargs: json.RawMessage(`{"x":2}`), Resources: []uint64{4}, Attempt: 3}
		resource := closure.Resource{ID: 4, Function: "load", Args: json.RawMessage(`[5]`)}
		leased := c
		leased.Task = "worker-0"
		h.leaseAll(closure.Lease{Closures: []closure.Closure{leased}, Resources: []closure.Resource{resource}})
		in := h.process("worker-0", "a", 1).request()
		in.Free = 1
		a := must.Get(h.Next(t.Context(), "worker-0", in))(t)
		require.Len(t, a.Closures, 1)
		assert.Equal(t, c, a.Closures[0].Closure)
		assert.Equal(t, []closure.Resource{resource}, a.Resources)
	})
}

// A flood of outcomes is returned in hundreds, not one by one.
func TestAFloodReturnsInHundreds(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		rest := closuresFrom(1, 1000)
		leases, returned := 0, 0
		working := make(chan struct{})
		send := func(in wire.ClosuresRequest) wire.ClosuresAnswer {
			a, err := h.Next(t.Context(), p.task, in)
			assert.NoError(t, err)
			return a
		}
		go func() {
			defer close(working)
			var outcomes []wire.CallOutcome
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
	value := func(text string) wire.CallOutcome {
		return wire.CallOutcome{Value: json.RawMessage(`"` + text + `"`)}
	}
	for name, o := range map[string]wire.CallOutcome{
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
				outcomes := make([]wire.CallOutcome, n)
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

// held returns the closures that the broker holds.
func (h *host) held() []uint64 {
	h.Broker.mu.Lock()
	defer h.Broker.mu.Unlock()
	return slices.Sorted(maps.Keys(h.entries))
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

func TestTextsAreBounded(t *testing.T) {
	long := make([]byte, 100_000)
	for i := range long {
		long[i] = "é"[i%2]
	}
	o := judge(&entry{}, wire.CallOutcome{Kind: "error", Error: &closure.Error{Message: "a" + string(long), Traceback: string(long) + "z"}})
	assert.Len(t, o.Error.Message, closure.MaxError-1)
	assert.Equal(t, "aé", o.Error.Message[:3])
	assert.Len(t, o.Error.Traceback, closure.MaxTraceback-1)
	assert.Equal(t, "éz", o.Error.Traceback[len(o.Error.Traceback)-3:])

	large := judge(&entry{closure: closure.Closure{Function: "f"}}, wire.CallOutcome{Value: make([]byte, closure.MaxBytes+1)})
	assert.Equal(t, closure.ErrValueTooLarge, large.Error.Kind)
	assert.Empty(t, large.Value)
	// A value is measured by its size in the history.
	for _, sign := range []string{"<", ">", "&", "\u2028"} {
		fits := json.RawMessage(`"` + strings.Repeat(sign, closure.MaxBytes/6) + `"`)
		assert.LessOrEqual(t, len(judge(&entry{}, wire.CallOutcome{Value: fits}).Value), closure.MaxBytes)
		fits = json.RawMessage(`"` + strings.Repeat(sign, closure.MaxBytes/6+1) + `"`)
		large := judge(&entry{closure: closure.Closure{Function: "f"}}, wire.CallOutcome{Value: fits})
		require.NotNil(t, large.Error, sign)
		assert.Equal(t, closure.ErrValueTooLarge, large.Error.Kind)
		assert.Contains(t, large.Error.Message, "the value of f has 262148 bytes of JSON, in which <, > and & take six each")
	}
	told := judge(&entry{told: true}, wire.CallOutcome{Kind: "cancelled", Error: &closure.Error{Kind: "CancelledError", Traceback: "here"}})
	assert.Equal(t, "here", told.Error.Traceback)
	assert.Equal(t, "CancelledError", judge(&entry{}, wire.CallOutcome{Kind: "cancelled", Error: &closure.Error{Kind: "CancelledError"}}).Error.Kind)
}
