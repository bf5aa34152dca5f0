package clustercoordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// RemoteValue is the value of a closure that may still be queued or executing.
type RemoteValue struct{ remote *closurequeue.Remote }

// ErrRemoteValue is returned for a RemoteValue among the arguments of a closure.
var ErrRemoteValue = errors.New("a RemoteValue cannot be an argument of a closure; fetch it first")

// MarshalJSON is [ErrRemoteValue].
func (*RemoteValue) MarshalJSON() ([]byte, error) { return nil, ErrRemoteValue }

// remoteFirst removes what package json adds to [ErrRemoteValue].
func remoteFirst(err error) error {
	if errors.Is(err, ErrRemoteValue) {
		return ErrRemoteValue
	}
	return err
}

// State returns the state of the value.
func (v *RemoteValue) State() State {
	select {
	case <-v.remote.Done():
	default:
		return NotReady
	}
	if _, err := v.remote.Value(); isAborted(err) {
		return Aborted
	}
	return Ready
}

// State is the state of a value.
type State string

// The values of [State].
const (
	NotReady State = "NOT_READY"
	Ready    State = "READY" // a value, or an error
	// Aborted means that the result of the closure will never be known: the run has ended, or
	// the coordinator was closed.
	Aborted State = "ABORTED"
)

// Done is closed when the closure has ended.
func (v *RemoteValue) Done() <-chan struct{} { return v.remote.Done() }

// ID waits until the queue has taken the closure, and returns its ID, with which any client can
// get the value later.
func (v *RemoteValue) ID(ctx context.Context) (uint64, error) { return v.remote.ID(ctx) }

// JSON waits for the value. If the value is aborted, the error is a [closure.Error] with the
// seed's text and the reason.
func (v *RemoteValue) JSON(ctx context.Context) (json.RawMessage, error) {
	select {
	case <-v.remote.Done():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b, err := v.remote.Value()
	if isAborted(err) {
		id, _ := v.remote.ID(context.Background()) // 0 if the queue never had it
		err = fmt.Errorf("%w (%w)", &closure.Error{Kind: closure.ErrCancelled, Message: closure.TextAborted, Closure: id}, err)
	}
	return b, err
}

// isAborted reports whether err is neither the closure's own error nor a refusal.
func isAborted(err error) bool {
	var (
		failed  *closure.Error
		refused *closure.RefusedError
	)
	return err != nil && !errors.As(err, &failed) && !errors.As(err, &refused)
}

// Get waits for the value and decodes it. The error of the closure itself is a
// [closure.Error].
func Get[T any](ctx context.Context, v *RemoteValue) (T, error) {
	var out T
	b, err := v.JSON(ctx)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("the value of the closure is not of type %T: %w", out, err)
	}
	return out, nil
}

// Fetch replaces every [RemoteValue] in slices and maps of any values by its value. It leaves
// everything else unchanged.
func Fetch(ctx context.Context, in any) (any, error) {
	switch in := in.(type) {
	case *RemoteValue:
		return Get[any](ctx, in)
	case []*RemoteValue:
		return fetchEach(ctx, in)
	case []any:
		return fetchEach(ctx, in)
	case map[string]any:
		out := make(map[string]any, len(in))
		for k, v := range in {
			var err error
			if out[k], err = Fetch(ctx, v); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return in, nil
}

func fetchEach[T any](ctx context.Context, in []T) (any, error) {
	out := make([]any, len(in))
	for i, v := range in {
		var err error
		if out[i], err = Fetch(ctx, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// PerWorkerValues is a per-worker resource. As an argument of a closure it stands for the value
// that the calling task has built. Copies are the same resource.
type PerWorkerValues struct{ resource *resource }

// resource is the state that copies of [PerWorkerValues] share.
type resource struct {
	queue    *closurequeue.Queue
	id       uint64
	released atomic.Bool
}

func newPerWorkerValues(queue *closurequeue.Queue, id uint64) PerWorkerValues {
	r := &resource{queue: queue, id: id}
	runtime.AddCleanup(r, func(id uint64) { queue.Release(id) }, id)
	return PerWorkerValues{r}
}

// Release releases the resource. Tasks still call closures that were scheduled with it, and
// drop the value after that. Release does not wait for them.
func (v PerWorkerValues) Release() {
	if v.resource != nil && !v.resource.released.Swap(true) {
		v.resource.queue.Release(v.resource.id)
	}
}

// MarshalJSON returns the reference to the resource for arguments.
func (v PerWorkerValues) MarshalJSON() ([]byte, error) {
	switch {
	case v.resource == nil:
		return nil, errors.New("these PerWorkerValues are empty; create some with CreatePerWorkerResource")
	case v.resource.released.Load():
		return nil, fmt.Errorf("the per-worker resource %d was released; create a new one", v.resource.id)
	}
	return fmt.Appendf(nil, `{%q:%d}`, closure.ResourceKey, v.resource.id), nil
}

// resources collects the IDs of the resources that arguments refer to.
type resources struct{ ids []uint64 }

func (r *resources) in(b []byte) error {
	if !bytes.Contains(b, []byte(closure.ResourceKey)) {
		return nil
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	r.walk(v)
	return nil
}

func (r *resources) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			r.walk(e)
		}
	case map[string]any:
		if id, ok := v[closure.ResourceKey].(float64); ok && len(v) == 1 {
			if !slices.Contains(r.ids, uint64(id)) {
				r.ids = append(r.ids, uint64(id))
			}
			return
		}
		for _, e := range v {
			r.walk(e)
		}
	}
}
