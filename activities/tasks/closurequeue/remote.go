package closurequeue

import (
	"context"
	"encoding/json"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Remote is a scheduled closure, and its value once there is one.
type Remote struct {
	closure closure.Closure
	size    int
	// epoch is the last epoch of the queue's errors that was reported before it was
	// scheduled.
	epoch uint64
	// attached reports whether join and done wait for it, since it was scheduled here.
	attached bool
	// unwanted reports whether the caller stopped waiting for room.
	unwanted bool
	// sought reports whether its outcome is being looked up, which works after the end of the
	// run, too.
	sought bool
	// known is closed when the ID is known, and done when there is an outcome.
	known, done chan struct{}
	id          uint64
	outcome     closure.Outcome
	err         error
}

func newRemote(c closure.Closure, epoch uint64) *Remote {
	return &Remote{
		closure: c, size: c.Size() + closureOverhead, epoch: epoch, attached: true,
		known: make(chan struct{}), done: make(chan struct{}),
	}
}

// fetched returns a Remote of which only the ID is known.
func fetched(id uint64) *Remote {
	r := newRemote(closure.Closure{}, 0)
	r.attached = false
	r.is(id)
	return r
}

// closureOverhead is the size of a closure without its name and arguments, in bytes.
const closureOverhead = 32

// ID waits until the queue has assigned an ID to the closure.
func (r *Remote) ID(ctx context.Context) (uint64, error) {
	select {
	case <-r.known:
		return r.id, nil
	case <-r.done:
		if r.id != 0 {
			return r.id, nil
		}
		return 0, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Done returns a channel that is closed when the closure has ended.
func (r *Remote) Done() <-chan struct{} { return r.done }

// Wait waits for the value. If the closure failed, the error is a [closure.Error].
func (r *Remote) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case <-r.done:
		return r.Value()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Value returns the value of a closure that has ended.
func (r *Remote) Value() (json.RawMessage, error) {
	if r.err != nil {
		return nil, r.err
	}
	if len(r.outcome.Value) == 0 {
		return json.RawMessage("null"), nil
	}
	return closure.PlainValue(r.outcome.Value), nil
}

// settle, fail and is are called once, with the queue's mu held.
func (r *Remote) settle(o closure.Outcome) {
	r.outcome = o
	if failure := o.Failure(); failure != nil {
		r.err = failure
	}
	close(r.done)
}

func (r *Remote) fail(err error) {
	r.err = err
	close(r.done)
}

func (r *Remote) is(id uint64) {
	r.id = id
	close(r.known)
}
