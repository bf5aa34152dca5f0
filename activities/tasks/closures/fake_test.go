package closures

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// run runs a test with its own clock, which advances only while everything waits.
func run(t *testing.T, test func(t *testing.T, h *host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &host{t: t}
		h.start()
		test(t, h)
		h.Close()
	})
}

// host is a broker, the tasks it has restarted, and its reports of serving processes.
type host struct {
	*Broker
	t testing.TB
	// earlier names the processes of the previous broker for the next one.
	earlier map[string][]string

	mu        sync.Mutex
	restarted []string
	reports   [][]closure.ServingTask
}

// start starts the first broker or the next one.
func (h *host) start() {
	if h.Broker != nil {
		h.Broker.Close()
	}
	h.Broker = NewBroker(Config{
		Log: zap.NewNop(),
		Restart: func(task string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.restarted = append(h.restarted, task)
		},
		Report: func(_ context.Context, list []closure.ServingTask) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.reports = append(h.reports, list)
			return nil
		},
		Earlier: h.earlier,
	})
}

// leasing is a lease in progress.
type leasing struct {
	cancel context.CancelFunc
	done   chan struct{}
	result closure.LeaseResult
	err    error
	began  time.Time
	took   time.Duration
}

func (h *host) lease(closures ...closure.Closure) *leasing {
	return h.leaseAll(closure.Lease{Closures: closures})
}

func (h *host) leaseAll(in closure.Lease) *leasing {
	ctx, cancel := context.WithCancel(h.t.Context())
	l := &leasing{cancel: cancel, done: make(chan struct{}), began: time.Now()}
	b := h.Broker
	go func() {
		defer close(l.done)
		l.result, l.err = b.Lease(ctx, in)
		l.took = time.Since(l.began)
	}()
	synctest.Wait()
	return l
}

// waits reports whether the lease has not returned yet.
func (l *leasing) waits() bool {
	select {
	case <-l.done:
		return false
	default:
		return true
	}
}

// get waits for the result of the lease.
func (l *leasing) get(t testing.TB) closure.LeaseResult {
	t.Helper()
	<-l.done
	require.NoError(t, l.err)
	r := l.result
	r.Done, r.Took = 0, 0 // the pace depends on the machine that runs the test
	return r
}

// fake is a process that serves closures under the control of a test.
type fake struct {
	h         *host
	task      string
	name      string
	slots     int
	functions []string
	seq, got  uint64
	held      []uint64
	calls     map[uint64]uint64
}

func (h *host) process(task, name string, slots int, functions ...string) *fake {
	if len(functions) == 0 {
		functions = []string{"f"}
	}
	return &fake{h: h, task: task, name: name, slots: slots, functions: functions, calls: map[uint64]uint64{}}
}

// request returns the next request of the process, with its present state.
func (p *fake) request() wire.ClosuresRequest {
	p.seq++
	return wire.ClosuresRequest{Process: p.name, Seq: p.seq, Got: p.got, Slots: p.slots, Functions: p.functions, Held: slices.Clone(p.held)}
}

func (p *fake) send(in wire.ClosuresRequest) wire.ClosuresAnswer {
	p.h.t.Helper()
	a := must.Get(p.h.Next(p.h.t.Context(), p.task, in))(p.h.t)
	synctest.Wait() // until leases that are due have returned
	return a
}

// read takes an answer, and returns the closures it brought.
func (p *fake) read(a wire.ClosuresAnswer) []uint64 {
	if a.News <= p.got {
		return nil
	}
	p.got = a.News
	var ids []uint64
	for _, c := range a.Closures {
		ids = append(ids, c.ID)
		p.calls[c.ID] = c.Call
	}
	p.held = append(p.held, ids...)
	return ids
}

// take requests closures, and waits for up to wait seconds.
func (p *fake) take(free int, wait float64) []uint64 {
	p.h.t.Helper()
	in := p.request()
	in.Free, in.Wait = free, wait
	return p.read(p.send(in))
}

// report returns a request with outcomes, whose closures the process holds no longer.
func (p *fake) report(outcomes ...wire.CallOutcome) wire.ClosuresRequest {
	for i := range outcomes {
		o := &outcomes[i]
		if o.Call == 0 {
			o.Call = p.calls[o.ID]
		}
		p.held = slices.DeleteFunc(p.held, func(id uint64) bool { return id == o.ID })
	}
	in := p.request()
	in.Done = outcomes
	return in
}

func (p *fake) done(outcomes ...wire.CallOutcome) wire.ClosuresAnswer {
	p.h.t.Helper()
	return p.send(p.report(outcomes...))
}

func newClosure(id uint64) closure.Closure { return closure.Closure{ID: id, Function: "f", Attempt: 1} }

func closuresFrom(first uint64, n int) []closure.Closure {
	list := make([]closure.Closure, n)
	for i := range list {
		list[i] = newClosure(first + uint64(i))
	}
	return list
}

// value returns the outcome of a call that took long, so that the next closure is given by
// itself.
func value(id uint64) wire.CallOutcome {
	return wire.CallOutcome{ID: id, Value: json.RawMessage(fmt.Sprint(id)), Seconds: 1}
}

// quick returns the outcome of a call that took no time.
func quick(id uint64) wire.CallOutcome {
	o := value(id)
	o.Seconds = 1e-6
	return o
}

func failed(id uint64, kind, message string) wire.CallOutcome {
	return wire.CallOutcome{ID: id, Kind: "error", Error: &closure.Error{Kind: kind, Message: message}, Seconds: 1}
}

func ids(outcomes []closure.Outcome) []uint64 {
	var list []uint64
	for _, o := range outcomes {
		list = append(list, o.ID)
	}
	return list
}

func numbers(first uint64, n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = first + uint64(i)
	}
	return list
}

func assertEmpty(t testing.TB, h *host) {
	t.Helper()
	h.Broker.mu.Lock()
	defer h.Broker.mu.Unlock()
	assert.Empty(t, h.entries)
	assert.Zero(t, h.queue.size)
	assert.Empty(t, h.queue.lines)
	assert.Empty(t, h.resources.all)
	assert.Empty(t, h.resources.refs)
}
