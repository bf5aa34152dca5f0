package rules

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// fail makes the error of a closure the queue's, if it is the first. Nothing is
// cancelled for it: that is for the next request to do. Later errors are
// only their closures' own.
func (q *Queue) fail(it *item, e *closure.Error) {
	q.keys.hasFailed(it.key(), it.ID)
	if q.fault == nil && !it.detached() {
		q.fault = e
	}
}

// failAgain makes the error the queue's of a closure that had failed before, when it is
// scheduled anew by its key. What the error was, the history knows.
func (q *Queue) failAgain(id uint64) {
	if id != 0 && q.fault == nil {
		q.fault = &closure.Error{
			Message: fmt.Sprintf("closure %d has failed before, and was scheduled again with the same key", id), Closure: id, Before: true,
		}
	}
}

// startDrain cancels all that is queued, has the hosts cancel what they hold, and
// lets the request wait until that has ended. If it is a schedule, its own closures
// are cancelled, too.
func (q *Queue) startDrain(r *request) {
	q.drain = r
	if r.kind == asksSchedule {
		q.cancelRequest(r)
	}
	q.lanes.each(func(it *item) {
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

// tell has the host of a closure cancel it.
func (q *Queue) tell(it *item) {
	if it.host != nil {
		it.told = true
		it.host.told = append(it.host.told, it.ID)
	}
}

// CancelLost says that a host could not be told to cancel closures. It is told again of
// those that it still holds.
func (q *Queue) CancelLost(c CancelOn) {
	for _, id := range c.Closures {
		if it := q.items[id]; it != nil && it.told && it.host != nil && it.host.name == c.Host && it.host.queue == c.Queue {
			q.tell(it)
		}
	}
}

// raise gives the error to the request that has waited for the drain, and clears it.
func (q *Queue) raise() {
	r, e := q.drain, q.fault
	q.drain, q.fault = nil, nil
	q.peers.raised(e)
	q.owe(r.client, e)
	q.raiseTo(r, e)
}

func (q *Queue) raiseTo(r *request, e *closure.Error) {
	r.client.epoch++
	r.client.busy, r.client.owed = 0, false
	if r.kind == asksSchedule {
		q.cancelRequest(r)
		q.answer(r, e, false)
	} else {
		q.answerWait(r, e, q.attachedOpen() == 0)
	}
}

// owe notes who else has to hear of an error that is raised to one client: those who
// wait, and those who have scheduled something since nothing was open, for that may have
// been cancelled. Otherwise a client that is gone, and whose request is still there, would
// be the only one to hear of it.
func (q *Queue) owe(raised *client, e *closure.Error) {
	q.last = e
	for _, r := range q.line {
		r.client.owed = r.client.owed || r.kind != asksSchedule
	}
	for _, c := range q.clients.list {
		c.owed = (c.owed || c.busy == q.period) && c != raised
	}
}

// raiseOwed raises the last error to the first request of each client that it is owed to.
// It reports whether there was one.
func (q *Queue) raiseOwed() bool {
	before := len(q.line)
	q.line = slices.DeleteFunc(q.line, func(r *request) bool {
		owed := r.client.owed && !r.detached
		if owed {
			q.raiseTo(r, q.last)
		}
		return owed
	})
	return len(q.line) < before
}

// Cancel cancels closures: those that are queued at once, those that hosts hold as
// soon as these can.
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
		q.lanes.each(one)
		for _, h := range q.hosts {
			h.each(one)
		}
		answer.Cancelled += q.cancelEntering()
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

// cancelEntering cancels those closures of a request that is in the queue by half which
// are not, and with that the request is answered.
func (q *Queue) cancelEntering() int {
	r := q.entering
	if r == nil {
		return 0
	}
	n := len(r.left)
	q.entering = nil
	q.cancelRequest(r)
	q.answer(r, nil, false)
	return n
}

// RunEnded ends the queue with its run. All that is open is cancelled, and nobody
// waits any more.
func (q *Queue) RunEnded(how string) {
	if q.ended != "" {
		return
	}
	q.ended = shorten.Head(how, maxReason)
	if q.ended == "" {
		q.ended = "it is over"
	}
	text := "The run has ended: " + q.ended
	open, some := q.attachedOpen() > 0, len(q.items) > 0
	q.decided.because(text)
	q.lanes.each(q.cancel)
	for _, h := range q.hosts {
		h.each(q.cancel)
		h.leases, h.rest, h.told = nil, nil, nil
	}
	q.leases = map[int]*lease{}
	q.hosts, q.workers = nil, nil
	if q.drain != nil {
		q.raise()
	}
	q.raiseOwed()
	if q.entering != nil {
		q.line = slices.Insert(q.line, 0, q.entering)
		q.entering = nil
	}
	for _, r := range q.line {
		e := &closure.Error{Kind: closure.ErrCancelled, Message: text}
		switch {
		case r.kind == asksSchedule:
			q.cancelRequest(r)
			q.answer(r, e, true)
		case open, r.all && some:
			q.answerWait(r, e, true)
		default:
			q.answerWait(r, nil, true)
		}
	}
	q.line = nil
}
