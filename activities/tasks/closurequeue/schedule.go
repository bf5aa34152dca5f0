package closurequeue

import (
	"context"
	"errors"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// maxPending bounds the number of closures that are scheduled here but have not been sent,
	// and maxPendingBytes their size.
	maxPending      = 2 * closure.MaxBatch
	maxPendingBytes = 2 * closure.MaxBatchBytes
)

// outbox holds the closures on their way to the queue. The lock of its [Queue] must be held.
type outbox struct {
	// pending are closures that are scheduled here but have not been sent yet.
	pending      []*Remote
	pendingBytes int
	sending      int // closures of the request in flight
	// room is the number of closures for which the queue had room when it last answered.
	room int
	// scheduled counts the closures that Schedule has taken. passed counts those that the queue
	// has answered for.
	scheduled, passed uint64
}

// Schedule takes a closure, to be sent with the next request. It waits while the queue is full;
// closures that the queue has not answered for count as queued. If the queue has raised an
// error in the meantime, Schedule returns it, once, and does not take the closure. A closure that
// every queue refuses is a [closure.RefusedError].
func (q *Queue) Schedule(ctx context.Context, c closure.Closure) (*Remote, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	c = escaped(c)
	for {
		if err := q.await(ctx, func() bool { return q.takes() }); err != nil {
			return nil, err
		}
		r, err := q.take(c)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		if err := q.awaitRoom(ctx, r); err != nil {
			q.takeBack(r)
			return nil, err
		}
		return r, nil
	}
}

// FirstRoom returns the number of closures that a client may take before a queue of that size
// has reported its room. It is 0 for a small queue, which others may have filled.
func FirstRoom(size int) int {
	if size == 0 {
		size = spec.DefaultQueueSize
	}
	if size > 0 && size < maxPending {
		return 0
	}
	return maxPending
}

// takes reports whether take would return without waiting. q.mu must be held.
func (q *Queue) takes() bool {
	return q.raised != nil || q.broken != nil ||
		q.unanswered() < max(1, q.room) && q.pendingBytes < maxPendingBytes
}

// unanswered returns the number of closures that the queue has not answered for.
func (o *outbox) unanswered() int { return len(o.pending) + o.sending }

// awaitRoom waits until there is room for a closure that was taken when the queue had none.
// There is at most one: the queue makes its request wait.
func (q *Queue) awaitRoom(ctx context.Context, r *Remote) error {
	return q.await(ctx, func() bool {
		select {
		case <-r.known:
		case <-r.done: // refused, or cancelled
		default:
			return q.unanswered() <= q.room
		}
		return true
	})
}

// takeBack withdraws a closure that the caller no longer wants. If it was sent already, it is
// cancelled once its ID is known.
func (q *Queue) takeBack(r *Remote) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r.unwanted = true
	at := slices.Index(q.pending, r)
	if at < 0 {
		return
	}
	q.pending = slices.Delete(q.pending, at, at+1)
	q.pendingBytes -= r.size
	q.passed++
	r.settle(closure.Outcome{Kind: closure.OutcomeCancelled})
	q.wake()
}

// take takes a closure, unless another caller was faster.
func (q *Queue) take(c closure.Closure) (*Remote, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.raised != nil:
		return nil, q.takeRaised()
	case q.broken != nil:
		return nil, q.broken
	case !q.takes():
		return nil, nil
	}
	r := newRemote(c, q.epoch)
	q.pending = append(q.pending, r)
	q.pendingBytes += r.size
	q.scheduled++
	if len(q.pending) == 1 && q.sending == 0 {
		q.wake()
	}
	return r, nil
}

// takeRaised returns the error to report and clears it. q.mu must be held.
func (q *Queue) takeRaised() error {
	err := q.raised
	q.raised = nil
	return err
}

// send sends the pending closures, one request after the other, until the client ends.
func (q *Queue) send() {
	for {
		if q.await(q.ctx, func() bool { return len(q.pending) > 0 }) != nil {
			return
		}
		if err := q.follow(q.ctx); err != nil {
			if q.ctx.Err() == nil {
				q.fail(err)
			}
			return
		}
		q.mu.Lock()
		remotes := q.nextBatch()
		q.sending = len(remotes)
		q.wake() // there is room
		q.mu.Unlock()
		if len(remotes) > 0 { // empty if the queue is broken
			q.deliver(remotes)
		}
	}
}

// nextBatch takes the closures from pending that fit into a request. All closures of a request
// have the same epoch, because an error cancels them together.
func (o *outbox) nextBatch() []*Remote {
	n, bytes := 0, 0
	for n < len(o.pending) && n < closure.MaxBatch {
		r := o.pending[n]
		if n > 0 && (bytes+r.size > closure.MaxBatchBytes || r.epoch != o.pending[0].epoch) {
			break
		}
		bytes += r.size
		n++
	}
	batch := o.pending[:n:n]
	o.pending = o.pending[n:]
	o.pendingBytes -= bytes
	if len(o.pending) == 0 {
		o.pending = nil // frees the closures that were sent
	}
	return batch
}

// deliver sends closures. If the queue refuses some of them, each of the others is still
// sent.
func (q *Queue) deliver(remotes []*Remote) {
	q.mu.Lock()
	q.batch++
	request := closure.ScheduleRequest{Client: q.name, Batch: q.batch, Epoch: remotes[0].epoch, Closures: make([]closure.Closure, len(remotes))}
	q.mu.Unlock()
	for i, r := range remotes {
		request.Closures[i] = r.closure
	}
	answer, err := q.client.Schedule(q.ctx, request)
	var refused *closure.RefusedError
	if half := len(remotes) / 2; half > 0 && errors.As(err, &refused) && !errors.Is(err, ErrNoQueue) {
		q.deliver(remotes[:half])
		q.deliver(remotes[half:])
		return
	}
	if len(remotes) == 1 {
		err = within(err, "closures[0].")
	}
	q.sent(remotes, answer, err)
}

// sent handles the answer to a request.
func (q *Queue) sent(remotes []*Remote, a closure.ScheduleAnswer, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wake()
	q.sending -= len(remotes)
	q.passed += uint64(len(remotes))
	if err != nil {
		// The queue has taken none of them.
		for _, r := range remotes {
			r.fail(err)
		}
		if q.raised == nil && q.broken == nil {
			q.raised = err
		}
		return
	}
	q.epoch = max(q.epoch, a.Epoch)
	q.room = maxPending
	if a.Room != nil {
		q.room = min(*a.Room, maxPending)
	}
	var unseen, unwanted []uint64
	for i, r := range remotes {
		id := a.First + uint64(i)
		r.is(id)
		if r.unwanted {
			unwanted = append(unwanted, id)
		}
		r.closure = closure.Closure{} // it is in the queue
		o, ended := q.early.find(id)
		switch {
		case ended:
			r.settle(o)
		case q.broken != nil:
			r.fail(q.broken)
		default: // even if it is cancelled: the history has its outcome
			q.expect(r)
			if q.early.full {
				unseen = append(unseen, id)
			}
		}
	}
	if a.Raised != nil && q.raised == nil {
		q.raised = a.Raised
	}
	if q.sending == 0 {
		q.early = early{}
	}
	q.look(unseen)
	if len(unwanted) > 0 && q.ctx.Err() == nil {
		q.loops.Go(func() { _, _ = q.client.Cancel(q.ctx, closure.CancelRequest{Closures: unwanted}) })
	}
}

// Flush waits until everything that was scheduled here before is in the queue.
func (q *Queue) Flush(ctx context.Context) error {
	q.mu.Lock()
	until := q.scheduled
	q.mu.Unlock()
	return q.await(ctx, func() bool { return q.broken != nil || q.passed >= until })
}
