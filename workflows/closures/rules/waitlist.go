package rules

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// advance answers the requests that need not wait any longer, and queues as many closures as have
// room. It reports whether it has queued any.
func (q *requests) advance() bool {
	if q.ended != "" {
		return false
	}
	if q.fault == nil && q.attachedOpen() == 0 && (q.partial == nil || q.partial.detached) {
		q.idleEpoch++ // no client has closures that an error could cancel
	}
	for {
		q.refuseStale()
		if q.raisePending() {
			continue
		}
		if q.drain != nil && q.executing.attached == 0 {
			q.raise()
			continue
		}
		if q.fault != nil && q.drain == nil {
			if r := q.takeAsking(); r != nil {
				q.startDrain(r)
				continue
			}
		}
		return q.serveWaitlist()
	}
}

// takeAsking removes and returns the oldest request that raises errors, or nil.
func (q *requests) takeAsking() *request {
	if r := q.partial; r != nil && !r.detached {
		q.partial = nil
		return r
	}
	at := slices.IndexFunc(q.waitlist, func(r *request) bool { return !r.detached })
	if at < 0 {
		return nil
	}
	r := q.waitlist[at]
	q.waitlist = slices.Delete(q.waitlist, at, at+1)
	return r
}

// refuseStale cancels closures that a client scheduled before it knew of an error that has
// been raised to it.
func (q *requests) refuseStale() {
	q.waitlist = slices.DeleteFunc(q.waitlist, func(r *request) bool {
		stale := r.kind == asksSchedule && !r.detached && r.epoch < r.client.epoch
		if stale {
			q.cancelRequest(r)
			q.answer(r, nil, true)
		}
		return stale
	})
}

// serveWaitlist answers the requests whose waiting is over, the oldest first.
//
//   - During an error or a drain only schedules of detached closures are served.
//   - A join holds back later schedules of its client. They come from other threads, and
//     the join must end although these schedule all the time. Schedules of other clients
//     are served, because the client of the join may have stopped waiting.
//   - A schedule that waits for room holds back later ones, so that they keep their order.
//     A join after it waits for its closures, too.
func (q *requests) serveWaitlist() (queued bool) {
	if r := q.partial; r != nil {
		queued = q.admit(r)
	}
	full := q.partial != nil
	// Some who schedule are not in the queue, and have closures that are not detached.
	scheduling := full && !q.partial.detached
	var joining []*client
	q.waitlist = slices.DeleteFunc(q.waitlist, func(r *request) bool {
		idle := q.attachedOpen() == 0 && !scheduling
		switch r.kind {
		case asksDone:
			if q.drain != nil {
				return false
			}
			q.answerWait(r, nil, idle)
			return true
		case asksJoin:
			if q.drain != nil || !idle {
				joining = append(joining, r.client)
				return false
			}
			q.answerWait(r, nil, true)
			return true
		}
		if full || !r.detached && (slices.Contains(joining, r.client) || q.drain != nil) {
			scheduling = scheduling || !r.detached
			return false
		}
		fits := q.fits(r)
		if fits {
			q.enter(r)
			if !r.detached {
				r.client.busy = q.idleEpoch
			}
			queued = q.admit(r) || queued
		}
		if !fits || q.partial == r {
			full, scheduling = true, scheduling || !r.detached
		}
		return fits
	})
	return queued
}

// admit queues the closures of a request that have IDs, if there is room. They are queued together,
// unless they exceed the size of the queue. Then they are queued one by one, as others leave it.
func (q *requests) admit(r *request) (some bool) {
	q.partial = r
	for room := q.room(); len(r.left) > 0 && room > 0; room-- {
		q.add(r.left[0])
		r.left[0], r.left = nil, r.left[1:]
		some = true
	}
	if len(r.left) == 0 {
		q.partial = nil
		q.answer(r, nil, false)
	}
	return some
}

// room returns how many more closures may be queued. Closures that a host holds beyond its
// slots count as queued, because they wait as well.
func (q *dispatcher) room() int {
	if q.config.QueueSize <= 0 {
		return closure.MaxBatch
	}
	waiting := q.queued.all
	for _, h := range q.hosts {
		waiting += max(0, h.held-h.slots)
	}
	return max(0, q.config.QueueSize-waiting)
}

// fits reports whether the first closures of a request can be queued.
func (q *requests) fits(r *request) bool {
	bytes := 0
	for i := range r.closures {
		bytes += r.closures[i].Size()
	}
	if q.tooLarge > 0 && len(q.items) > 0 || q.bytes > 0 && q.bytes+bytes > closure.MaxQueueBytes {
		return false
	}
	if size := q.config.QueueSize; size > 0 && len(r.closures) > size {
		return q.room() > 0
	}
	return len(r.closures) <= q.room() || q.config.QueueSize <= 0
}

// enter assigns IDs to the closures of a request.
func (q *requests) enter(r *request) {
	r.first = q.lastID + 1
	for _, c := range r.closures {
		q.lastID++
		it := newItem(c, q.lastID)
		q.bytes += it.size
		r.left = append(r.left, it)
	}
	r.closures = nil
}

// cancelRequest cancels the closures of a request that are not queued yet. They get IDs like
// others.
func (q *requests) cancelRequest(r *request) {
	if r.closures != nil {
		q.enter(r)
	}
	if len(r.left) == 0 {
		return
	}
	first, last := r.left[0].ID, r.left[len(r.left)-1].ID
	for _, it := range r.left {
		q.bytes -= it.size
		q.useNoMore(it.Resources)
	}
	q.counts.Scheduled += uint64(len(r.left))
	q.counts.Cancelled += uint64(len(r.left))
	q.decided.cancel(first, last)
	q.noteEnded(first, last)
	r.left = nil
}
