package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// release drops resources that are no longer needed.
func (r *resources) release(ids []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		delete(r.all, id)
	}
}

// known returns the resources that this process knows.
func (r *resources) known() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.all))
}

// get returns a resource's value, which is built at its first use. A resource that could not be
// built stays failed for this process's lifetime, unless the reason was a task that does not
// answer; then the next call rebuilds it.
func (r *resources) get(ctx context.Context, s *server, id uint64) (reflect.Value, error) {
	r.mu.Lock()
	one := r.all[id]
	if one == nil {
		r.mu.Unlock()
		return reflect.Value{}, &inputError{fmt.Errorf("the host has not defined resource %d, or it is no longer needed", id)}
	}
	if !one.started {
		one.started = true
		// The first call to need it may be cancelled, but others also need it.
		go r.build(s, one)
	}
	r.mu.Unlock()
	select {
	case <-one.done:
		return one.value, one.err
	case <-ctx.Done():
		return reflect.Value{}, context.Cause(ctx)
	}
}

func (r *resources) build(s *server, one *resource) {
	err := errEndedItsGoroutine // if the function does not return
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		var unavailable *UnavailableError
		switch {
		case err == nil:
		case errors.As(err, &unavailable), s.ctx.Err() != nil:
			one.err = err
			if r.all[one.ID] == one {
				r.all[one.ID] = &resource{Resource: one.Resource, done: make(chan struct{})}
			}
		default:
			one.err = &inputError{err}
		}
		close(one.done)
	}()
	one.value, err = s.build(one)
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
