package rules

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// fail makes the error of a closure the queue's, if it is the first. It cancels nothing: the
// next request does. Later errors are only their closures' own.
func (q *requests) fail(it *item, e *closure.Error) {
	if q.fault == nil && !it.detached() {
		q.fault = e
	}
}

// putBack queues an item again that a host gave back, at its old place. It is cancelled instead
// if its host had a request to cancel it, or if the queue has an error.
func (q *requests) putBack(it *item) {
	if it.told || q.fault != nil && !it.detached() {
		q.cancel(it)
		return
	}
	q.takeOut(it)
	q.queues.of(it).putBack(it)
	q.queued.count(it, 1)
	q.counts.PutBack++
}

// startDrain cancels the queued closures, requests hosts to cancel theirs, and makes the
// request wait until these have ended. If it is a schedule, its own closures are cancelled,
// too.
func (q *requests) startDrain(r *request) {
	q.drain = r
	if r.kind == asksSchedule {
		q.cancelRequest(r)
	}
	q.queues.each(func(it *item) {
		if !it.detached() {
			q.cancel(it)
		}
	})
	for _, h := range q.hosts {
		h.each(func(it *item) {
			if !it.detached() {
				q.tell(it)
			}
		})
	}
}

// tell queues a request to the host of a closure to cancel it.
func (q *dispatcher) tell(it *item) {
	if it.host != nil {
		it.told = true
		it.host.told = append(it.host.told, it.ID)
	}
}

// CancelLost records that a request to cancel closures did not reach a host. It is repeated for
// the closures that the host still holds.
func (q *dispatcher) CancelLost(c CancelOn) {
	for _, id := range c.Closures {
		if it := q.items[id]; it != nil && it.told && it.host != nil && it.host.name == c.Host && it.host.queue == c.Queue {
			q.tell(it)
		}
	}
}

// raise answers the request that has waited for the drain with the error, and clears it.
func (q *requests) raise() {
	r, e := q.drain, q.fault
	q.drain, q.fault = nil, nil
	q.peers.raised(e)
	q.notePending(r.client, e)
	q.raiseTo(r, e)
}

// raiseTo answers a request with an error, and begins an epoch of its client.
func (q *requests) raiseTo(r *request, e *closure.Error) {
	r.client.epoch++
	r.client.busy, r.client.pendingError = 0, false
	if r.kind == asksSchedule {
		q.cancelRequest(r)
		q.answer(r, e, false)
	} else {
		q.answerWait(r, e, q.attachedOpen() == 0)
	}
}

// notePending notes which other clients must raise an error that is raised to one: clients that
// wait, and clients that have scheduled something since nothing was open, which may have been
// cancelled. Otherwise an error would be lost that is raised to a client that is gone but whose
// request was still there.
func (q *requests) notePending(raised *client, e *closure.Error) {
	q.last = e
	for _, r := range q.waitlist {
		r.client.pendingError = r.client.pendingError || r.kind != asksSchedule
	}
	for _, c := range q.clients.list {
		c.pendingError = (c.pendingError || c.busy == q.idleEpoch) && c != raised
	}
}

// raisePending raises the last error to the first request of each client for which it is
// pending.
// It reports whether there was one.
func (q *requests) raisePending() bool {
	before := len(q.waitlist)
	q.waitlist = slices.DeleteFunc(q.waitlist, func(r *request) bool {
		pending := r.client.pendingError && !r.detached
		if pending {
			q.raiseTo(r, q.last)
		}
		return pending
	})
	return len(q.waitlist) < before
}

// Cancel cancels closures: queued ones at once, and closures on hosts once their hosts have
// done so.
func (q *Queue) Cancel(r closure.CancelRequest) closure.CancelAnswer {
	var answer closure.CancelAnswer
	if q.ended != "" {
		return answer
	}
	one := func(it *item) {
		if it.host == nil {
			q.cancel(it)
			answer.Cancelled++
			return
		}
		q.tell(it)
		answer.Told++
	}
	if len(r.Closures) == 0 {
		q.queues.each(one)
		for _, h := range q.hosts {
			h.each(one)
		}
		answer.Cancelled += q.cancelPartial()
	}
	asked := make(map[uint64]bool, len(r.Closures))
	for _, id := range r.Closures {
		if it := q.items[id]; it != nil && !asked[id] {
			asked[id] = true
			one(it)
		}
	}
	q.advance()
	return answer
}

// cancelPartial cancels the closures of the partial request that are not queued yet, and
// answers it.
func (q *requests) cancelPartial() int {
	r := q.partial
	if r == nil {
		return 0
	}
	n := len(r.left)
	q.partial = nil
	q.cancelRequest(r)
	q.answer(r, nil, false)
	return n
}

// maxReason bounds the text of how a run ended, in bytes.
const maxReason = 1000

// RunEnded ends the queue with its run. It cancels all closures and answers all requests.
func (q *Queue) RunEnded(how string) {
	if q.ended != "" {
		return
	}
	q.ended = shorten.Head(how, maxReason)
	if q.ended == "" {
		q.ended = "it is over"
	}
	text := "The run has ended: " + q.ended
	open := q.attachedOpen() > 0
	q.decided.because(text)
	q.queues.each(q.cancel)
	for _, h := range q.hosts {
		h.each(q.cancel)
		h.leases, h.rest, h.told = nil, nil, nil
	}
	q.leases = map[int]*lease{}
	q.hosts, q.workers = nil, nil
	if q.drain != nil {
		q.raise()
	}
	q.raisePending()
	if q.partial != nil {
		q.waitlist = slices.Insert(q.waitlist, 0, q.partial)
		q.partial = nil
	}
	for _, r := range q.waitlist {
		e := &closure.Error{Kind: closure.ErrCancelled, Message: text}
		switch {
		case r.kind == asksSchedule:
			q.cancelRequest(r)
			q.answer(r, e, true)
		case open:
			q.answerWait(r, e, true)
		default:
			q.answerWait(r, nil, true)
		}
	}
	q.waitlist = nil
}
