package clustercoordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// RemoteValue is the value of a closure that may still be queued or executing.
type RemoteValue struct {
	closure   closure.Closure
	resources []closure.Resource
	size      int
	done      chan struct{}
	value     json.RawMessage
	err       error
}

// ErrRemoteValue reports a RemoteValue among a closure's arguments.
var ErrRemoteValue = errors.New("a RemoteValue cannot be an argument of a closure; fetch it first")

// MarshalJSON always returns [ErrRemoteValue].
func (*RemoteValue) MarshalJSON() ([]byte, error) { return nil, ErrRemoteValue }

// newRemoteValue creates a closure from a function and its arguments.
func newRemoteValue(function string, args []any, kwargs map[string]any) (*RemoteValue, error) {
	v := &RemoteValue{closure: closure.Closure{Function: function}, done: make(chan struct{})}
	for _, part := range []struct {
		value any
		empty bool
		to    *json.RawMessage
	}{{args, len(args) == 0, &v.closure.Args}, {kwargs, len(kwargs) == 0, &v.closure.Kwargs}} {
		if part.empty {
			continue
		}
		b, err := json.Marshal(part.value)
		if errors.Is(err, ErrRemoteValue) {
			return nil, ErrRemoteValue
		} else if err != nil {
			return nil, fmt.Errorf("the arguments of %s: %w", function, err)
		}
		*part.to = b
	}
	for _, a := range args {
		if r, ok := a.(PerWorkerValues); ok {
			v.resources = append(v.resources, r.resource)
			v.closure.Resources = append(v.closure.Resources, r.resource.ID)
			v.size += len(r.resource.Args)
		}
	}
	v.size += v.closure.Size()
	if err := v.closure.Validate(); err != nil {
		return nil, &closure.RefusedError{Reason: err}
	}
	return v, nil
}

// ended completes the closure with its outcome.
func (v *RemoteValue) ended(o closure.Outcome) {
	if e := o.Failure(); e != nil {
		v.end(nil, e)
		return
	}
	v.end(closure.PlainValue(o.Value), nil)
}

func (v *RemoteValue) end(value json.RawMessage, err error) {
	v.value, v.err = value, err
	close(v.done)
}

// JSON waits for the value. If the closure itself failed, the error is a [closure.Error].
func (v *RemoteValue) JSON(ctx context.Context) (json.RawMessage, error) {
	select {
	case <-v.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v.err == nil && v.value == nil {
		return json.RawMessage("null"), nil
	}
	return v.value, v.err
}

// Get waits for the value and decodes it. If the closure itself failed, the error is a
// [closure.Error].
func Get[T any](ctx context.Context, v *RemoteValue) (T, error) {
	var out T
	b, err := v.JSON(ctx)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("the closure's value is not of type %T: %w", out, err)
	}
	return out, nil
}

// PerWorkerValues is a per-worker resource. As a closure's argument it stands for the value that
// the calling task has built. Copies are the same resource.
type PerWorkerValues struct{ resource closure.Resource }

// CreatePerWorkerResource creates a resource in every process that serves. Each process calls
// the function once, before the first closure that has the resource as an argument, and keeps
// the value for all of them. A restarted process calls it again.
func (c *Coordinator) CreatePerWorkerResource(function string, args ...any) (PerWorkerValues, error) {
	v, err := newRemoteValue(function, args, nil)
	if err != nil {
		return PerWorkerValues{}, err
	}
	id := 1 + rand.Uint64N(closure.MaxResourceID) //nolint:gosec // no secret
	return PerWorkerValues{closure.Resource{ID: id, Function: function, Args: v.closure.Args}}, nil
}

// Release releases a resource. Once the closures that use it have finished, each process drops its
// value when it next receives closures. Closures that are scheduled later must not use the
// resource.
func (c *Coordinator) Release(v PerWorkerValues) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = append(c.released, v.resource.ID)
}

// MarshalJSON returns the argument that refers to the resource.
func (v PerWorkerValues) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{%q:%d}`, closure.ResourceKey, v.resource.ID), nil
}
