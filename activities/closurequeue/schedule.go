package closurequeue

import (
	"context"
	"errors"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// maxPending bounds what is scheduled here and not yet sent, and maxPendingBytes
	// what that has in bytes.
	maxPending      = 2 * spec.MaxBatch
	maxPendingBytes = 2 * spec.MaxBatchBytes
)

// Schedule takes a closure, to be sent with the next request. It waits while much is
// waiting to be sent, as it is when the queue is full. An error of the queue that
// was raised meanwhile is returned here, once, and then the closure is not taken; but
// not where that is detached. A closure that no queue takes is a [RefusedError].
func (q *Queue) Schedule(ctx context.Context, c spec.Closure) (*Remote, error) {
	c, err := checked(c)
	if err != nil {
		return nil, err
	}
	for {
		if err := q.await(ctx, func() bool { return q.takes(!detached(c)) }); err != nil {
			return nil, err
		}
		if r, err := q.take(c); r != nil || err != nil {
			return r, err
		}
	}
}

// takes reports whether take has something to say. It is for holders of mu.
func (q *Queue) takes(attached bool) bool {
	return attached && q.raised != nil || q.broken != nil || len(q.pending) < maxPending && q.pendingBytes < maxPendingBytes
}

// take takes a closure, unless others were quicker.
func (q *Queue) take(c spec.Closure) (*Remote, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	attached := !detached(c)
	switch {
	case attached && q.raised != nil:
		return nil, q.takeRaised()
	case q.broken != nil:
		return nil, q.broken
	case !q.takes(attached):
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

// RefusalsAreTold says that whoever schedules here waits for [Remote.ID] or [Remote.Wait]
// of every closure, and hears there what is refused: then that is no error of the next
// call, too, which would be about another closure. It is called before anything is
// scheduled.
func (q *Queue) RefusalsAreTold() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusalsTold = true
}

// Raised is the error of the queue that the next call here would tell. It is told with
// this.
func (q *Queue) Raised() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.takeRaised()
}

// takeRaised is the error that has to be told; once. It is for holders of mu.
func (q *Queue) takeRaised() error {
	err := q.raised
	q.raised = nil
	return err
}

// send sends what is pending, one request after the other, until the client ends.
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
		if len(remotes) > 0 { // not where the queue has broken meanwhile
			q.deliver(remotes)
		}
	}
}

// nextBatch takes from pending what fits into a request: closures that were scheduled
// when the same errors had been told, for those of a request are cancelled together.
// Nor are detached ones among others, which errors do not concern. It is for holders
// of mu.
func (q *Queue) nextBatch() []*Remote {
	n, bytes := 0, 0
	for n < len(q.pending) && n < spec.MaxBatch {
		r := q.pending[n]
		if n > 0 && (bytes+r.size > spec.MaxBatchBytes || r.epoch != q.pending[0].epoch || r.attached != q.pending[0].attached) {
			break
		}
		bytes += r.size
		n++
	}
	batch := q.pending[:n:n]
	q.pending = q.pending[n:]
	q.pendingBytes -= bytes
	if len(q.pending) == 0 {
		q.pending = nil // so that what was sent can be collected
	}
	return batch
}

// deliver sends closures. Where the queue refuses some of them, each of the others is
// sent all the same.
func (q *Queue) deliver(remotes []*Remote) {
	q.mu.Lock()
	q.batch++
	request := spec.ScheduleRequest{Client: q.name, Batch: q.batch, Epoch: remotes[0].epoch, Closures: make([]spec.Closure, len(remotes))}
	q.mu.Unlock()
	for i, r := range remotes {
		request.Closures[i] = r.closure
	}
	answer, err := q.client.Schedule(q.ctx, request)
	var refused *RefusedError
	if half := len(remotes) / 2; half > 0 && errors.As(err, &refused) && !errors.Is(err, ErrNoQueue) {
		q.deliver(remotes[:half])
		q.deliver(remotes[half:])
		return
	}
	q.sent(remotes, answer, err)
}

// sent takes in the answer to a request.
func (q *Queue) sent(remotes []*Remote, a spec.ScheduleAnswer, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wake()
	q.sending -= len(remotes)
	q.passed += uint64(len(remotes))
	if err != nil {
		// Nothing of it is in the queue.
		for _, r := range remotes {
			r.fail(err)
		}
		var refused *RefusedError
		told := q.refusalsTold && errors.As(err, &refused)
		if remotes[0].attached && !told && q.raised == nil && q.broken == nil {
			q.raised = err
		}
		return
	}
	q.epoch = max(q.epoch, a.Epoch)
	var unseen []uint64
	for i, id := range a.IDs(len(remotes)) {
		r := remotes[i]
		r.is(id)
		r.closure = spec.Closure{} // it is in the queue
		_, before := a.Known[i]
		r.attached = r.attached && !before
		o, ended := q.early.find(id)
		switch {
		case ended:
			r.settle(o)
		case q.broken != nil:
			r.fail(q.broken)
		default: // also where it is cancelled: the history says so, or how it ended before
			q.expect(r)
			if before || q.early.full {
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
}

// Flush waits until everything that was scheduled here before is in the queue.
func (q *Queue) Flush(ctx context.Context) error {
	q.mu.Lock()
	until := q.scheduled
	q.mu.Unlock()
	return q.await(ctx, func() bool { return q.broken != nil || q.passed >= until })
}
