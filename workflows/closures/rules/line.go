package rules

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// advance lets requests get on as far as they can. It reports whether closures were
// queued.
func (q *Queue) advance() (queued bool) {
	if q.ended != "" {
		return false
	}
	if q.fault == nil && q.attachedOpen() == 0 && (q.entering == nil || q.entering.detached) {
		q.period++ // nobody has closures here that an error could cancel
	}
	for {
		q.refuseStale()
		if q.raiseOwed() {
			continue
		}
		if q.drain != nil && q.attachedExecuting == 0 {
			q.raise()
			continue
		}
		if q.fault != nil && q.drain == nil {
			if r := q.takeAsking(); r != nil {
				q.startDrain(r)
				continue
			}
		}
		before := q.fault
		queued = q.serveLine() || queued
		if q.fault == before {
			return queued
		}
		// A closure that had failed was scheduled anew. Somebody may be asking already.
	}
}

// takeAsking takes out the oldest request that has a part in errors, if there is one.
func (q *Queue) takeAsking() *request {
	if r := q.entering; r != nil && !r.detached {
		q.entering = nil
		return r
	}
	at := slices.IndexFunc(q.line, func(r *request) bool { return !r.detached })
	if at < 0 {
		return nil
	}
	r := q.line[at]
	q.line = slices.Delete(q.line, at, at+1)
	return r
}

// refuseStale cancels what was scheduled before its client knew of an error that has
// been raised to it.
func (q *Queue) refuseStale() {
	q.line = slices.DeleteFunc(q.line, func(r *request) bool {
		stale := r.kind == asksSchedule && !r.detached && r.epoch < r.client.epoch
		if stale {
			q.cancelRequest(r)
			q.answer(r, nil, true)
		}
		return stale
	})
}

// serveLine answers those requests whose waiting is over, the oldest first.
//
//   - While there is an error or a drain, nobody gets on but who schedules detached
//     closures only.
//   - A join holds back the schedules of its client after it: they come from
//     other threads, and it has to end although these schedule all the time. Those of
//     other clients go on: nobody knows whether anybody still waits for the join.
//   - A schedule that waits for room holds back those after it, and so they keep
//     their order. A join after it waits for its closures, too.
func (q *Queue) serveLine() (queued bool) {
	if r := q.entering; r != nil {
		queued = q.admit(r)
	}
	full := q.entering != nil
	// Some who schedule are not in the queue, and have closures that are not detached.
	arriving := full
	scheduling := full && !q.entering.detached
	before := q.fault
	var joining []*client
	q.line = slices.DeleteFunc(q.line, func(r *request) bool {
		if q.fault != before && !r.detached {
			return false // raised by the next round of advance
		}
		idle := q.attachedOpen() == 0 && !scheduling
		if r.all {
			idle = len(q.items) == 0 && !arriving
		}
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
			arriving, scheduling = true, scheduling || !r.detached
			return false
		}
		if err := q.checkKeys(r.closures); err != nil {
			q.refuse(r, err)
			return true
		}
		fits := q.fits(r)
		if fits {
			failed := q.enter(r)
			if !r.detached {
				r.client.busy = q.period
			}
			queued = q.admit(r) || queued
			q.failAgain(failed)
		}
		if !fits || q.entering == r {
			full, arriving, scheduling = true, true, scheduling || !r.detached
		}
		return fits
	})
	return queued
}

// refuse answers a request to schedule that cannot be taken after all. It is not
// remembered: asked again it is another one.
func (q *Queue) refuse(r *request, err error) {
	for i := range r.closures {
		q.useNoMore(r.closures[i].Resources)
	}
	r.client.batches.forgive(r.number)
	r.schedule.refuse(err)
}

func (q *Queue) attachedOpen() int { return q.attachedQueued + q.attachedExecuting }

// admit queues the closures of a request that has entered as far as there is room. All
// of them are queued together, unless they are more than the queue takes at all: then
// one after another, as others leave it.
func (q *Queue) admit(r *request) (some bool) {
	q.entering = r
	for room := q.room(); len(r.left) > 0 && room > 0; room-- {
		q.add(r.left[0])
		r.left[0], r.left = nil, r.left[1:]
		some = true
	}
	if len(r.left) == 0 {
		q.entering = nil
		q.answer(r, nil, false)
	}
	return some
}

// room returns how many more closures may be queued. Those that a host was given ahead of
// what its slots can call still wait, and count as queued: only what is called does not.
func (q *Queue) room() int {
	if q.config.QueueSize <= 0 {
		return closure.MaxBatch
	}
	waiting := q.queued
	for _, h := range q.hosts {
		waiting += max(0, h.held-h.slots)
	}
	return max(0, q.config.QueueSize-waiting)
}

// fits reports whether a request can begin to be queued. Those that are larger than
// all there is wait until there is as much room as there can be.
func (q *Queue) fits(r *request) bool {
	fresh, bytes := q.fresh(r)
	if fresh == 0 {
		return true
	}
	if q.crowded > 0 && len(q.items) > 0 || q.bytes > 0 && q.bytes+bytes > closure.MaxQueueBytes {
		return false
	}
	if size := q.config.QueueSize; size > 0 && fresh > size {
		return q.room() > 0
	}
	return fresh <= q.room() || q.config.QueueSize <= 0
}

// fresh returns how many closures of a request are new, and their bytes.
func (q *Queue) fresh(r *request) (n, bytes int) {
	var seen map[string]bool
	for i := range r.closures {
		c := &r.closures[i]
		if c.Options != nil && c.Options.Key != "" {
			if _, known := q.known(c.Options); known || seen[c.Options.Key] {
				continue
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[c.Options.Key] = true
		}
		n, bytes = n+1, bytes+c.Size()
	}
	return n, bytes
}

// known returns the closure that has the key of another one, unless that one is to be called
// in its place.
func (q *Queue) known(o *closure.Options) (keyed, bool) {
	if o == nil {
		return keyed{}, false
	}
	c, known := q.keys.find(o.Key)
	if known && c.failed && o.Retry {
		return keyed{}, false
	}
	return c, known
}

// enter gives the closures of a request their IDs. One whose key is known is the
// closure that has it. It returns the first of those that had failed; 0: none had.
func (q *Queue) enter(r *request) (failed uint64) {
	for i, c := range r.closures {
		it := newItem(c, q.lastID+1)
		if before, known := q.known(c.Options); known {
			r.knows(i, before.id)
			q.useNoMore(it.Resources)
			if before.failed && failed == 0 && !it.detached() {
				failed = before.id
			}
			continue
		}
		q.lastID++
		if r.first == 0 {
			r.first = it.ID
		}
		q.keys.add(it.key(), it.ID)
		q.bytes += it.size
		r.left = append(r.left, it)
	}
	r.closures = nil
	return failed
}

func (r *request) knows(i int, id uint64) {
	if r.known == nil {
		r.known = map[int]uint64{}
	}
	r.known[i] = id
}

// cancelRequest cancels those closures of a request that are not queued yet. They
// have IDs like others.
func (q *Queue) cancelRequest(r *request) {
	if r.closures != nil {
		q.enter(r)
	}
	if len(r.left) == 0 {
		return
	}
	first, last := r.left[0].ID, r.left[len(r.left)-1].ID
	for _, it := range r.left {
		q.bytes -= it.size
		q.keys.forget(it.key(), it.ID)
		q.useNoMore(it.Resources)
	}
	q.counts.Scheduled += uint64(len(r.left))
	q.counts.Cancelled += uint64(len(r.left))
	q.decided.cancel(first, last)
	q.noteEnded(first, last)
	r.left = nil
}
