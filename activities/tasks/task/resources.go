package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// resources are the resources that this process built or may have to build.
type resources struct {
	mu  sync.Mutex
	all map[uint64]*resource
}

// resource is one resource. done is closed once building it has succeeded or failed.
type resource struct {
	closure.Resource
	started bool
	done    chan struct{}
	value   reflect.Value
	err     error

	// The mutex of resources guards these. uses counts the calls that use it, and its construction
	// counts as one. If released, it is dropped after the last use.
	uses     int
	released bool
}

// inputError reports that a resource could not be built.
type inputError struct{ original error }

func (e *inputError) Error() string {
	kind := cmp.Or(kindOf(e.original), "error")
	return fmt.Sprintf("Input has an error, the original exception is %s(%q), error message is %s.", kind, e.original.Error(), e.original)
}

// learn adds resource definitions.
func (r *resources) learn(list []closure.Resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[uint64]*resource{}
	}
	for _, one := range list {
		if r.all[one.ID] == nil {
			r.all[one.ID] = &resource{Resource: one, done: make(chan struct{})}
		}
	}
}

// release drops resources that are no longer needed. A call keeps those it uses.
func (r *resources) release(ids []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if one := r.all[id]; one != nil {
			delete(r.all, id)
			one.released = true
			r.dropUnused(one)
		}
	}
}

// known returns the resources that this process knows.
func (r *resources) known() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.all))
}

// leave ends a use by a call or by the construction. mu must be held, also for dropUnused.
func (r *resources) leave(one *resource) {
	one.uses--
	r.dropUnused(one)
}

// dropUnused closes the value, if it can be closed and is no longer used.
func (r *resources) dropUnused(one *resource) {
	if !one.released || one.uses > 0 || !one.value.IsValid() {
		return
	}
	value := one.value
	one.value = reflect.Value{}
	// The interface may hold nil, which cannot be closed.
	if c, ok := value.Interface().(io.Closer); ok {
		go closeResource(one.ID, one.Function, c)
	}
}

func closeResource(id uint64, function string, c io.Closer) {
	defer func() {
		if p := recover(); p != nil {
			slog.Warn("closing a per-worker resource panicked", "resource", id, "function", function, "panic", p)
		}
	}()
	if err := c.Close(); err != nil {
		slog.Warn("a per-worker resource was not closed", "resource", id, "function", function, "error", err)
	}
}

// get returns a resource's value, which is built at its first use. A resource that could not be
// built stays failed for this process's lifetime, unless the reason was a task that does not
// answer; then the next call rebuilds it. The caller must call leave after its call.
func (r *resources) get(ctx context.Context, s *server, id uint64) (value reflect.Value, leave func(), err error) {
	r.mu.Lock()
	one := r.all[id]
	if one == nil {
		r.mu.Unlock()
		return value, nil, &inputError{fmt.Errorf("the host has not defined the resource %d, or it is no longer needed", id)}
	}
	one.uses++
	if !one.started {
		one.started = true
		one.uses++
		// The first call to need it may be cancelled, but others also need it.
		go r.build(s, one)
	}
	r.mu.Unlock()
	leave = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leave(one)
	}
	select {
	case <-one.done:
		return one.value, leave, one.err
	case <-ctx.Done():
		return value, leave, context.Cause(ctx)
	}
}

func (r *resources) build(s *server, one *resource) {
	finished := false
	var value reflect.Value
	var err error
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		var unavailable *UnavailableError
		switch {
		case !finished:
			one.err = &inputError{errEndedItsGoroutine}
		case err == nil:
			one.value = value
		case errors.As(err, &unavailable), s.ctx.Err() != nil:
			one.err = err
			if !one.released {
				r.all[one.ID] = &resource{Resource: one.Resource, done: make(chan struct{})}
			}
		default:
			one.err = &inputError{err}
		}
		close(one.done)
		r.leave(one)
	}()
	value, err = s.build(one)
	finished = true
}

func (s *server) build(one *resource) (reflect.Value, error) {
	f := s.functions.find(one.Function)
	switch {
	case f == nil:
		return reflect.Value{}, s.unknown(one.Function)
	case !f.returns:
		return reflect.Value{}, fmt.Errorf("%s returns only an error, so it cannot build a resource", one.Function)
	}
	args, err := f.arguments(one.Args, one.Kwargs, nil)
	if err != nil {
		return reflect.Value{}, err
	}
	return f.invoke(s.ctx, args)
}
