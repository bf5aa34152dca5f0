package rules

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// LeaseEnded records the result of a lease.
func (q *Queue) LeaseEnded(number int, r closure.LeaseResult) {
	l := q.leases[number]
	if l != nil && !q.suspended {
		if q.drain == nil {
			q.adapt(l.host, r)
		}
		l.host.unreachable = false
		q.doubt(l.host, false)
	}
	for _, o := range r.Outcomes {
		q.outcome(l, o)
	}
	if l != nil {
		q.keepRest(l, r.Rest)
		q.close(l)
	}
	q.advance()
}

// LeaseLost records that the activity of a lease has failed because its host worker did not
// answer. It is unknown which of its closures had been called. So all are put back, and none
// counts as lost. A doubted host that loses its trial closure as well gets nothing until its
// next message: a dead host would otherwise hold one closure after another.
func (q *Queue) LeaseLost(number int) {
	l := q.leases[number]
	if l == nil {
		return
	}
	if l.probing && l.host.doubted {
		q.serve(l.host, nil)
	}
	q.doubt(l.host, true)
	l.host.window = l.host.slots
	l.host.gone.cover(l.released)
	q.close(l)
	q.advance()
}

// LeaseRefused records that the host worker has no tasks of the run: the group went
// elsewhere, or is between two generations. The host gets nothing until its next message,
// and the closures are put back.
func (q *Queue) LeaseRefused(number int) {
	l := q.leases[number]
	if l == nil {
		return
	}
	q.serve(l.host, nil)
	q.close(l)
	q.advance()
}

// close removes a lease and puts back the closures that it still names, which the host no
// longer knows.
func (q *Queue) close(l *lease) {
	delete(q.leases, l.number)
	l.host.leases = slices.DeleteFunc(l.host.leases, func(o *lease) bool { return o == l })
	for _, it := range l.items {
		if it.lease == l.number {
			q.putBack(it)
		}
	}
	q.forget(l.host)
}

// keepRest keeps the closures that have not ended with their host.
func (q *Queue) keepRest(l *lease, rest []uint64) {
	for _, id := range rest {
		if it := q.items[id]; it != nil && it.lease == l.number {
			it.lease = 0
			if !q.suspended {
				it.returns = min(it.returns+1, slowReturns)
			}
			l.host.rest = append(l.host.rest, it)
		}
	}
}

// outcome records the end of a call. The first final outcome of a closure counts, from any
// lease, as for readers of the history. A later one is only another call (in TensorFlow it
// would be an assertion).
func (q *Queue) outcome(l *lease, o closure.Outcome) {
	if wasCalled(o) {
		q.counts.Calls++
	}
	it := q.items[o.ID]
	if it == nil {
		return
	}
	if o.Kind.Final() {
		if l == nil || it.lease != l.number {
			q.tell(it) // another host calls it for nothing
		}
		q.final(it, o)
		return
	}
	if l == nil || it.lease != l.number {
		return
	}
	switch o.Kind {
	case closure.OutcomeLost:
		q.lost(it, o)
	case closure.OutcomeUnavailable:
		q.unavailable(it, o)
	default:
		q.giveUp(it, &closure.Error{Message: fmt.Sprintf("it ended as %q on its host, an outcome unknown to this version", o.Kind), Task: o.Task})
	}
}

func wasCalled(o closure.Outcome) bool {
	switch o.Kind {
	case closure.OutcomeInput:
		return false
	case closure.OutcomeLost, closure.OutcomeCancelled:
		return o.Started
	}
	return true
}

// final ends a closure with the outcome that its host has returned.
func (q *Queue) final(it *item, o closure.Outcome) {
	switch o.Kind {
	case "", closure.OutcomeValue:
		q.end(it, &q.counts.Finished)
	case closure.OutcomeCancelled:
		q.end(it, &q.counts.Cancelled)
	default:
		q.end(it, &q.counts.Failed)
		if !o.Alone {
			q.fail(it, errorOf(it, o))
		}
	}
}

// giveUp ends a closure with an error of the queue.
func (q *Queue) giveUp(it *item, e *closure.Error) {
	e = bounded(e)
	e.Closure = it.ID
	q.end(it, &q.counts.Failed)
	q.decided.end(closure.Outcome{ID: it.ID, Kind: closure.OutcomeError, Error: e})
	q.fail(it, e)
}

// errorOf returns the error of an outcome, with its closure and task.
func errorOf(it *item, o closure.Outcome) *closure.Error {
	e := &closure.Error{Message: "the function failed, and its host did not report why"}
	if o.Error != nil {
		e = bounded(o.Error)
	}
	e.Closure = it.ID
	if e.Task == "" {
		e.Task = o.Task
	}
	return e
}
