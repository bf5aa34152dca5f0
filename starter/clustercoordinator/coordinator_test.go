package clustercoordinator

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
)

// memory is a run's queue; the run's only task calls closures in this process.
type memory struct {
	mu      sync.Mutex
	machine *rules.Queue
	changed chan struct{}
	takes   int
	// released holds the resources that requests have released.
	released []uint64
}

func newMemory(size int) *memory {
	m := &memory{machine: rules.New(rules.Config{Size: size}), changed: make(chan struct{})}
	m.machine.Serving(closure.ServingMessage{Host: "a", Queue: "a", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 1}}})
	return m
}

func (*memory) ID() string { return "queue" }

func (m *memory) Status(context.Context) (closure.QueueStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Status(), nil
}

func (m *memory) Schedule(ctx context.Context, r closure.ScheduleRequest) (closure.ScheduleAnswer, error) {
	return ask(ctx, m, func() *rules.Call[closure.ScheduleAnswer] {
		m.released = append(m.released, r.Released...)
		return m.machine.Schedule(r)
	})
}

func (m *memory) Join(ctx context.Context, r closure.WaitRequest) (closure.WaitAnswer, error) {
	return ask(ctx, m, func() *rules.Call[closure.WaitAnswer] { return m.machine.Join(r) })
}

func (m *memory) Take(ctx context.Context, r closure.TakeRequest) (closure.TakeAnswer, error) {
	return ask(ctx, m, func() *rules.Call[closure.TakeAnswer] {
		m.takes++
		return m.machine.Take(r)
	})
}

func ask[A any](ctx context.Context, m *memory, do func() *rules.Call[A]) (A, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	call := do()
	m.change()
	for !call.Ready() {
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		m.mu.Lock()
		if ctx.Err() != nil {
			var none A
			return none, ctx.Err()
		}
	}
	return call.Answer()
}

func (m *memory) change() {
	for _, a := range m.machine.Actions() {
		if !a.Cancel {
			go m.run(a.Batch.Number, m.machine.Input(a.Batch))
		}
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// run calls functions. echo returns its argument, slow does so after a second, and fail returns
// an error.
func (m *memory) run(number int, in closure.Batch) {
	var r closure.BatchResult
	for _, c := range in.Closures {
		var args []json.RawMessage
		_ = json.Unmarshal(c.Args, &args)
		o := closure.Outcome{ID: c.ID, Task: "worker-0"}
		switch c.Function {
		case "slow":
			time.Sleep(time.Second)
		case "fail":
			o.Kind, o.Error = closure.OutcomeError, &closure.Error{Kind: "ValueError", Message: "no"}
		}
		if o.Error == nil {
			o.Value = args[0]
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.machine.BatchEnded(number, r)
	m.change()
}

// with runs a test in a synctest bubble, with a coordinator and a queue of the given size.
func with(t *testing.T, size int, do func(t *testing.T, c *Coordinator, m *memory)) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(size)
		c := attach(m, size)
		defer c.Close()
		do(t, c, m)
	})
}

func scheduled(t *testing.T, c *Coordinator, function string, args ...any) *RemoteValue {
	t.Helper()
	return must.Get(c.Schedule(t.Context(), function, args...))(t)
}

func TestValues(t *testing.T) {
	with(t, 2, func(t *testing.T, c *Coordinator, _ *memory) {
		var values []*RemoteValue
		for i := range 20 {
			values = append(values, scheduled(t, c, "echo", i))
		}
		require.NoError(t, c.Join(t.Context()))
		for i, v := range values {
			assert.Equal(t, i, must.Get(Get[int](t.Context(), v))(t))
		}
		assert.True(t, must.Get(c.Done(t.Context()))(t))
	})
}

// A lone call takes one request. A long call, or one that is not alone, does not delay other
// calls.
func TestALoneCall(t *testing.T) {
	with(t, 100, func(t *testing.T, c *Coordinator, m *memory) {
		for i := range 3 {
			assert.Equal(t, i, must.Get(Get[int](t.Context(), scheduled(t, c, "echo", i)))(t))
		}
		assert.Zero(t, m.takes)
		slow := scheduled(t, c, "slow", 7)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, c.Flush(t.Context()))
		assert.Less(t, time.Since(began), time.Second)
		assert.Equal(t, 7, must.Get(Get[int](t.Context(), slow))(t))
		slow = scheduled(t, c, "slow", 8)
		synctest.Wait()
		began = time.Now()
		other := scheduled(t, c, "echo", 9)
		require.NoError(t, c.Flush(t.Context()))
		assert.Zero(t, time.Since(began))
		assert.Equal(t, 9, must.Get(Get[int](t.Context(), other))(t))
		assert.Equal(t, 8, must.Get(Get[int](t.Context(), slow))(t))
	})
}

// A resource goes with the first closure that uses it, and is known by its ID until it is released.
func TestResources(t *testing.T) {
	with(t, 2, func(t *testing.T, c *Coordinator, m *memory) {
		data := must.Get(c.CreatePerWorkerResource("load", 3))(t)
		for range 2 {
			value := must.Get(Get[map[string]uint64](t.Context(), scheduled(t, c, "echo", data)))(t)
			assert.Equal(t, map[string]uint64{closure.ResourceKey: data.resource.ID}, value)
		}
		c.Release(data)
		must.Get(Get[int](t.Context(), scheduled(t, c, "echo", 1)))(t)
		assert.Equal(t, []uint64{data.resource.ID}, m.released)
	})
}

func TestTheFirstErrorIsReturnedOnce(t *testing.T) {
	with(t, 100, func(t *testing.T, c *Coordinator, _ *memory) {
		failed := scheduled(t, c, "fail")
		var e *closure.Error
		require.ErrorAs(t, c.Join(t.Context()), &e)
		assert.Equal(t, "ValueError", e.Kind)
		require.NoError(t, c.Join(t.Context()))
		_, err := failed.JSON(t.Context())
		require.ErrorAs(t, err, &e)
		_, err = c.Schedule(t.Context(), "echo", failed)
		require.ErrorIs(t, err, ErrRemoteValue)

		scheduled(t, c, "fail")
		for err = nil; err == nil; {
			synctest.Wait()
			_, err = c.Schedule(t.Context(), "echo", 1)
		}
		require.ErrorAs(t, err, &e)
		require.NoError(t, c.Join(t.Context()))
	})
}

func TestTheRunEnds(t *testing.T) {
	with(t, 100, func(t *testing.T, c *Coordinator, m *memory) {
		v := scheduled(t, c, "slow", 1)
		synctest.Wait()
		m.mu.Lock()
		m.machine.RunEnded("the run has ended")
		m.change()
		m.mu.Unlock()
		_, err := v.JSON(t.Context())
		require.ErrorContains(t, err, "the run has ended")
		require.Error(t, c.Join(t.Context()))
		_, err = c.Schedule(t.Context(), "echo", 1)
		require.Error(t, err)
		assert.False(t, errors.Is(err, context.Canceled))
		time.Sleep(time.Minute) // let the call start
	})
}
