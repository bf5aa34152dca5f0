package closurequeue

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

var patience = queues.Patience

// fixture is a queue whose tasks have a few functions, and its server.
type fixture struct {
	*queues.Server
	*Queue
	t *testing.T
	// release ends the calls of wait.
	release chan struct{}
}

// newFixture returns a fixture whose queue has that size, if one is given.
func newFixture(t *testing.T, size ...int) *fixture {
	t.Helper()
	f := &fixture{t: t, release: make(chan struct{})}
	functions := queues.Functions(f.release)
	functions["forever"] = func(ctx context.Context, _ []any, _ map[string]any) (any, error) { <-ctx.Done(); return nil, ctx.Err() }
	f.Server = queues.New(t, functions)
	if len(size) > 0 {
		f.Limit(size[0])
	}
	f.Queue = f.open(size...)
	return f
}

func (f *fixture) open(size ...int) *Queue {
	f.t.Helper()
	in := closure.QueueInput{Run: queues.Run}
	if len(size) > 0 {
		in.QueueSize = size[0]
	}
	q := must.Get(Open(patience(f.t), f.Server, "", in))(f.t)
	f.t.Cleanup(q.Close)
	return q
}

func newClosure(function string, args ...any) closure.Closure {
	b, err := json.Marshal(append([]any{}, args...))
	if err != nil {
		panic(err)
	}
	return closure.Closure{Function: function, Args: b}
}

func (f *fixture) schedule(c closure.Closure) *Remote {
	f.t.Helper()
	r := must.Get(f.Schedule(patience(f.t), c))(f.t)
	return r
}

func (f *fixture) assertValue(want string, r *Remote) {
	f.t.Helper()
	v, err := r.Wait(patience(f.t))
	if assert.NoError(f.t, err) {
		assert.Equal(f.t, want, string(v))
	}
}

func (f *fixture) assertError(want string, r *Remote) {
	f.t.Helper()
	_, err := r.Wait(patience(f.t))
	assert.EqualError(f.t, err, want)
}

// assertEnded and assertOpen check whether the outcome of a closure has arrived.
func (f *fixture) assertEnded(r *Remote) {
	f.t.Helper()
	select {
	case <-r.Done():
	default:
		f.t.Errorf("closure %d has no outcome here", r.id)
	}
}

func (f *fixture) assertOpen(r *Remote) {
	f.t.Helper()
	select {
	case <-r.Done():
		f.t.Errorf("closure %d has an outcome", r.id)
	default:
	}
}

func (f *fixture) eventually(what string, condition func() bool) {
	f.t.Helper()
	require.Eventually(f.t, condition, time.Minute, time.Millisecond, what)
}

func text(i int) string { return fmt.Sprint(i) }
