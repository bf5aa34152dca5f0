package closures

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// fast makes a process execute quick calls, so that it then gets many closures at once.
func (p *fake) fast() {
	p.h.t.Helper()
	p.take(0, 0)
	p.h.Broker.mu.Lock()
	defer p.h.Broker.mu.Unlock()
	p.h.processes[processKey{p.task, p.name}].learn("f", 1e-6)
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
				var outcomes []wire.CallOutcome
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
		assert.Equal(t, map[uint64]int{13: 3}, lostByName, "no other closure is blamed")
	})
}

// The number of remembered cancellations of unknown closures is bounded.
func TestEarlyCancellationsAreBounded(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		time.Sleep(settleAfter)
		for id := range uint64(2 * maxCancelled) {
			h.Cancel(closure.CancelLease{Closures: []uint64{id + 1}})
		}
		assert.LessOrEqual(t, len(h.cancelled.has), maxCancelled)
		last := uint64(2 * maxCancelled)
		r := h.lease(newClosure(last)).get(t)
		require.Len(t, r.Outcomes, 1)
		assert.Equal(t, closure.OutcomeCancelled, r.Outcomes[0].Kind)
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

// A process is given about 20 ms of work, and at most a fair share.
func TestBatchesFollowHowLongCallsTake(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		for first := range uint64(20) {
			h.lease(closuresFrom(1+1000*first, 1000)...)
		}
		p := h.process("worker-0", "a", 1)
		taking := func(seconds float64) int {
			for range 60 {
				var outcomes []wire.CallOutcome
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

// Every slot gets a closure for any number of slots: sums of fractions are not exact.
func TestAllSlotsAreFilled(t *testing.T) {
	for slots := 1; slots <= 100; slots++ {
		run(t, func(t *testing.T, h *host) {
			h.lease(closuresFrom(1, slots)...)
			require.Len(t, h.process("worker-0", "a", slots).take(slots, 0), slots)
		})
	}
}
