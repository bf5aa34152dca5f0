package closures

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// goProcess is a serving process inside the test's process.
type goProcess struct {
	stop  context.CancelFunc
	ended chan error
}

func (m *machine) goProcess(name string, slots int, functions map[string]any) *goProcess {
	m.t.Helper()
	f := task.NewFunctions()
	for name, fn := range functions {
		require.NoError(m.t, f.Register(name, fn))
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &goProcess{stop: cancel, ended: make(chan error, 1)}
	client := m.client(name)
	go func() { p.ended <- client.Serve(ctx, f, task.Slots(slots)) }()
	m.t.Cleanup(cancel)
	return p
}

func TestGoServes(t *testing.T) {
	m := newMachine(t, "worker-0")
	m.goProcess("worker-0", 2, map[string]any{
		"add":  func(_ context.Context, a, b int) (int, error) { return a + b, nil },
		"fail": func(context.Context) error { return errors.New("no") },
		"die":  func(context.Context) error { runtime.Goexit(); return nil },
		"dead": func(context.Context) error { panic("at the disco") },
		"ps":   func(context.Context) error { return &task.UnavailableError{Task: "ps-0"} },
	})
	out := m.all(calling(1, "add", 2, 3), calling(2, "fail"), calling(3, "die"), calling(4, "dead"), calling(5, "ps"), calling(6, "add", "x", 1), calling(7, "add", 1, 1))
	assertText(t, "5", out[1])
	assertText(t, "error : no", out[2])
	assertText(t, "error : the function ended its goroutine instead of returning", out[3])
	assertText(t, "error panic: at the disco", out[4])
	assert.Contains(t, out[4].Error.Traceback, "TestGoServes")
	assertText(t, "unavailable UnavailableError: ps-0 does not answer", out[5])
	assert.Equal(t, "ps-0", out[5].Error.Task)
	assertText(t, `error ArgumentError: add: argument 1 is "x": json: cannot unmarshal string into Go value of type int`, out[6])
	assertText(t, "2", out[7])
	assert.Equal(t, "worker-0", out[1].Task)
	unknown := calling(8, "nobody has this")
	assertText(t, `error UnknownFunctionError: function "nobody has this" is not registered here; registered are add, dead, die, fail, ps`, m.one(unknown))
}

func TestServeRefusesWhatCannotWork(t *testing.T) {
	m := newMachine(t, "worker-0")
	f := task.NewFunctions()
	require.EqualError(t, m.client("worker-0").Serve(t.Context(), f), "no function is registered, so nothing can be served")
	require.NoError(t, f.Register("f", func(context.Context) error { return nil }))
	require.EqualError(t, m.client("worker-0").Serve(t.Context(), f, task.Slots(0)), "slots is 0; use 1 to 1024")
}

func TestGoTakesNoResources(t *testing.T) {
	m := newMachine(t, "worker-0")
	m.goProcess("worker-0", 1, map[string]any{"any": func(_ context.Context, d any) (any, error) { return d, nil }})
	assertText(t, "error ArgumentError: any is written in Go and does not take resources of Python's ClusterCoordinator", m.one(using(calling(1, "any", resource(1)), 1)))
	assertText(t, `{"$clusterrun.resource":1}`, m.one(calling(2, "any", resource(1))))
}

// Cancelling a closure cancels its function's context.
func TestGoCancel(t *testing.T) {
	m := newMachine(t, "worker-0")
	began := make(chan error, 10)
	m.goProcess("worker-0", 2, map[string]any{
		"wait": func(ctx context.Context) error {
			began <- nil
			<-ctx.Done()
			began <- context.Cause(ctx)
			return ctx.Err()
		},
		"stubborn": func(ctx context.Context) (int, error) {
			began <- nil
			<-ctx.Done()
			return 7, nil
		},
	})
	outcomes := make(chan map[uint64]closure.Outcome)
	go func() { outcomes <- m.all(calling(1, "wait"), calling(2, "stubborn"), calling(3, "wait")) }()
	<-began
	<-began
	m.cancel(time.Minute, 1, 2, 3)
	out := <-outcomes
	assert.Equal(t, task.ErrCallCancelled, <-began)
	assertText(t, "cancelled CancelledError: "+closure.TextCancelled, out[1])
	assertText(t, "7", out[2])
	assertText(t, "cancelled CancelledError: "+closure.TextCancelled, out[3])
}

// The host may be killed at any time: processes continue, and report to the next host.
func TestGoGoesOnWhenTheHostIsKilled(t *testing.T) {
	m := newMachine(t, "worker-0")
	began, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	m.goProcess("worker-0", 2, map[string]any{
		"f": func(_ context.Context, n int) (int, error) { return n, nil },
		"long": func(context.Context) (string, error) {
			calls.Add(1)
			began <- struct{}{}
			<-release
			return "done", nil
		},
	})
	m.awaitServing(1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = m.now().Run(ctx, closure.Batch{Closures: []closure.Closure{calling(1, "long")}}, false) }()
	<-began
	cancel()
	m.kill()
	assertText(t, "2", m.one(calling(2, "f", 2)))
	m.kill()
	close(release)
	assertText(t, `"done"`, m.one(calling(1, "long")))
	assert.EqualValues(t, 1, calls.Load())
	m.awaitServing(1)
}

// When its context is cancelled, a process returns its closures and leaves. A call that still
// completes counts.
func TestGoLeaves(t *testing.T) {
	m := newMachine(t, "worker-0", "worker-1")
	began := make(chan struct{}, 2)
	first := m.goProcess("worker-0", 2, map[string]any{
		"value": func(ctx context.Context) (string, error) { began <- struct{}{}; <-ctx.Done(); return "at the end", nil },
		"error": func(ctx context.Context) (string, error) { began <- struct{}{}; <-ctx.Done(); return "", ctx.Err() },
	})
	outcomes := make(chan map[uint64]closure.Outcome)
	go func() { outcomes <- m.all(calling(1, "value"), calling(2, "error"), calling(3, "value")) }()
	<-began
	<-began
	first.stop()
	require.ErrorIs(t, <-first.ended, context.Canceled)
	m.awaitServing(0)
	quick := func(context.Context) (string, error) { return "elsewhere", nil }
	m.goProcess("worker-1", 2, map[string]any{"value": quick, "error": quick})
	out := <-outcomes
	assertText(t, `"at the end"`, out[1])
	assertText(t, `"elsewhere"`, out[2])
	assertText(t, `"elsewhere"`, out[3])
}

func TestGoIsToldThatItHasEnded(t *testing.T) {
	m := newMachine(t, "worker-0")
	p := m.goProcess("worker-0", 1, map[string]any{"f": func(context.Context) error { return nil }})
	m.awaitServing(1)
	m.now().ProcessEnded("worker-0", "")
	err := <-p.ended
	var refused *task.APIError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "process_ended", refused.Code)
}

// Many large values do not cause requests that the host refuses.
func TestGoReturnsLargeValues(t *testing.T) {
	m := newMachine(t, "worker-0")
	large := strings.Repeat("x", closure.MaxBytes-2)
	m.goProcess("worker-0", 8, map[string]any{"f": func(context.Context) (string, error) { return large, nil }})
	var list []closure.Closure
	for id := range uint64(40) {
		list = append(list, calling(id+1, "f"))
	}
	out := m.all(list...)
	require.Len(t, out, 40)
	for _, o := range out {
		assert.Len(t, o.Value, closure.MaxBytes)
	}
}

// Functions can be registered late.
func TestGoRegistersLater(t *testing.T) {
	m := newMachine(t, "worker-0")
	f := task.NewFunctions()
	require.NoError(t, f.Register("register", func(context.Context) error {
		return f.Register("later", func(context.Context) (int, error) { return 1, nil })
	}))
	client := m.client("worker-0")
	go func() { _ = client.Serve(t.Context(), f) }()
	m.awaitServing(1)
	assertText(t, "", m.one(calling(1, "register")))
	assertText(t, "1", m.one(calling(2, "later")))
}
