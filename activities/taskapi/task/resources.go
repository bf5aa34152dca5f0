package task

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/clusterrun/clusterrun/activities/taskapi/internal/wire"
)

// resources are what this process has built, or is to build when it is needed.
type resources struct {
	mu  sync.Mutex
	all map[uint64]*resource
}

// resource is one of them. Done is closed once it is built, or has failed to be.
type resource struct {
	wire.CallResource
	started bool
	done    chan struct{}
	value   reflect.Value
	err     error
}

// inputError says that a resource could not be built (SEED-46).
type inputError struct{ original error }

func (e *inputError) Error() string {
	kind := kindOf(e.original)
	if kind == "" {
		kind = "error"
	}
	return fmt.Sprintf("Input has an error, the original exception is %s(%q), error message is %s.", kind, e.original.Error(), e.original)
}

// learn takes in what resources are.
func (r *resources) learn(list []wire.CallResource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[uint64]*resource{}
	}
	for _, one := range list {
		if r.all[one.ID] == nil {
			r.all[one.ID] = &resource{CallResource: one, done: make(chan struct{})}
		}
	}
}

// get is the value of a resource, which is built at its first use. One that could
// not be built stays so as long as this process lives. A task that does not answer
// is no reason for that: then it is built anew the next time.
func (r *resources) get(ctx context.Context, s *server, id uint64) (reflect.Value, error) {
	r.mu.Lock()
	one := r.all[id]
	if one == nil {
		r.mu.Unlock()
		return reflect.Value{}, &inputError{fmt.Errorf("the host has not said what the resource %d is", id)}
	}
	if !one.started {
		one.started = true
		// The call that needs it first may be cancelled, and others need it, too.
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
	finished := false
	defer func() {
		if !finished {
			one.err = &inputError{errEndedItsGoroutine}
		}
		close(one.done)
	}()
	value, err := s.build(one)
	finished = true
	var unavailable *UnavailableError
	switch {
	case err == nil:
		one.value = value
	case errors.As(err, &unavailable), s.ctx.Err() != nil:
		one.err = err
		r.mu.Lock()
		r.all[one.ID] = &resource{CallResource: one.CallResource, done: make(chan struct{})}
		r.mu.Unlock()
	default:
		one.err = &inputError{err}
	}
}

func (s *server) build(one *resource) (reflect.Value, error) {
	f := s.functions.find(one.Function)
	switch {
	case f == nil:
		return reflect.Value{}, s.unknown(one.Function)
	case !f.returns:
		return reflect.Value{}, fmt.Errorf("%s returns only an error, so it is none that builds a resource", one.Function)
	}
	args, err := f.arguments(one.Args, one.Kwargs, nil)
	if err != nil {
		return reflect.Value{}, err
	}
	return f.invoke(s.ctx, args)
}
