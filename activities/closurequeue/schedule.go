package closurequeue

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxPending bounds what is scheduled here and not yet in the queue.
const maxPending = 2 * spec.MaxBatch

// Schedule takes a closure, to be sent with the next request. It waits while much is
// waiting to be sent, as it is when the queue is full. An error of the queue that
// was raised meanwhile is returned here, once, and then the closure is not taken.
func (q *Queue) Schedule(ctx context.Context, c spec.Closure) (*Remote, error) {
	if err := q.await(ctx, func() bool {
		return q.raised != nil || q.broken != nil || len(q.pending) < maxPending
	}); err != nil {
		return nil, err
	}
	r := newRemote(c)
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.takeRaised(); err != nil {
		return nil, err
	}
	if q.broken != nil {
		return nil, q.broken
	}
	q.pending = append(q.pending, r)
	q.pendingBytes += r.size
	if len(q.pending) == 1 && q.sending == 0 {
		q.wake()
	}
	return r, nil
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
		q.mu.Lock()
		remotes := q.nextBatch()
		q.batch++
		request := spec.ScheduleRequest{Client: q.name, Batch: q.batch, Epoch: q.epoch, Closures: make([]spec.Closure, len(remotes))}
		for i, r := range remotes {
			request.Closures[i] = r.closure
		}
		q.sending = len(remotes)
		q.follow()
		q.wake() // there is room
		q.mu.Unlock()
		answer, err := update[spec.ScheduleAnswer](q.ctx, q, spec.UpdateSchedule, request)
		q.sent(remotes, answer, err)
	}
}

// nextBatch takes from pending what fits into a request. It is for holders of mu.
func (q *Queue) nextBatch() []*Remote {
	n, bytes := 0, 0
	for n < len(q.pending) && n < spec.MaxBatch {
		bytes += q.pending[n].size
		if n > 0 && bytes > spec.MaxBatchBytes {
			break
		}
		n++
	}
	batch := q.pending[:n:n]
	q.pending = q.pending[n:]
	if len(q.pending) == 0 {
		q.pending = nil // so that what was sent can be collected
	}
	return batch
}

// sent takes in the answer to a request.
func (q *Queue) sent(remotes []*Remote, a spec.ScheduleAnswer, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sending = 0
	defer q.wake()
	if err != nil {
		// It was refused: nothing of it is in the queue.
		for _, r := range remotes {
			r.fail(err)
		}
		if q.raised == nil {
			q.raised = err
		}
		return
	}
	q.epoch = max(q.epoch, a.Epoch)
	next := a.First
	for i, r := range remotes {
		id, known := a.Known[i]
		if !known {
			id = next
			next++
		}
		r.is(id)
		r.closure = spec.Closure{} // it is in the queue
		switch {
		case a.Cancelled || a.Raised != nil:
			r.settle(spec.Outcome{ID: id, Kind: spec.OutcomeCancelled})
		default:
			q.expect(id, r)
			if known {
				q.loops.Go(func() { q.lookBack(id) })
			}
		}
	}
	if a.Raised != nil && q.raised == nil {
		q.raised = a.Raised
	}
	clear(q.early)
	q.cancelledEarly = nil
}

// lookBack finds the outcome of a closure whose key was known: it may have ended
// before anything that is followed here.
func (q *Queue) lookBack(id uint64) {
	delay := firstRetry
	for {
		if _, err := q.Fetch(q.ctx, id); err == nil || q.ctx.Err() != nil {
			return
		}
		select {
		case <-q.ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, maxRetry)
	}
}

// expect notes that somebody waits for the outcome of a closure. It is for holders
// of mu.
func (q *Queue) expect(id uint64, r *Remote) {
	if o, ok := q.early[id]; ok {
		r.settle(o)
		return
	}
	for _, d := range q.cancelledEarly {
		for _, c := range d.Cancelled {
			if c[0] <= id && id <= c[1] {
				r.settle(cancelledOutcome(id, d.Text))
				return
			}
		}
	}
	q.remotes[id] = append(q.remotes[id], r)
	q.follow()
}

// Flush waits until everything scheduled here is in the queue.
func (q *Queue) Flush(ctx context.Context) error {
	if err := q.await(ctx, func() bool { return q.broken != nil || len(q.pending) == 0 && q.sending == 0 }); err != nil {
		return err
	}
	return nil
}
