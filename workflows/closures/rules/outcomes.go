package rules

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// LeaseEnded takes in what the activity of a lease has returned.
func (q *Queue) LeaseEnded(number int, r closure.LeaseResult) {
	l := q.leases[number]
	if l != nil && !q.suspended {
		if !q.paused && q.drain == nil {
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

// LeaseLost says that the activity of a lease has failed: its host worker did not
// answer any more. Which of its closures had been called, nobody knows. So all are
// put back, and none of them is blamed for it. A host that did not answer for what it got
// to see whether it does gets nothing until it says again that tasks serve there: one
// that died for good would keep a closure for as long as that takes to show, over and
// over.
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

// LeaseRefused says that the host worker has no tasks of the run, or none any more: the
// group went elsewhere, or is between two generations. It gets nothing until it says
// that tasks serve there. The closures are put back.
func (q *Queue) LeaseRefused(number int) {
	l := q.leases[number]
	if l == nil {
		return
	}
	q.serve(l.host, nil)
	q.close(l)
	q.advance()
}

// close forgets a lease and puts back what it still names: what the host does not
// know any more.
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

// keepRest leaves with the host what has not ended there.
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

// outcome takes in how one call has ended. Those who follow the history take the
// first final outcome of a closure, whoever it comes from, and so does the queue. A
// later one is only another call (in the seed it would be an assertion).
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
			q.tell(it) // another host calls it in vain
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
		q.giveUp(it, &closure.Error{Message: fmt.Sprintf("the host says that it ended as %q, which this version of the queue does not know", o.Kind), Task: o.Task})
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

// final ends a closure with what its host has returned.
func (q *Queue) final(it *item, o closure.Outcome) {
	switch o.Kind {
	case "", closure.OutcomeValue:
		q.end(it, &q.counts.Finished)
	case closure.OutcomeCancelled:
		q.end(it, &q.counts.Cancelled)
		q.keys.forget(it.key(), it.ID)
	default:
		q.end(it, &q.counts.Failed)
		if !o.Alone {
			q.fail(it, errorOf(it, o))
		}
	}
}

// giveUp ends a closure with an error that the queue has found.
func (q *Queue) giveUp(it *item, e *closure.Error) {
	e = bounded(e)
	e.Closure = it.ID
	q.end(it, &q.counts.Failed)
	q.decided.end(closure.Outcome{ID: it.ID, Kind: closure.OutcomeError, Error: e})
	q.fail(it, e)
}

// errorOf returns the error of an outcome, with where it comes from.
func errorOf(it *item, o closure.Outcome) *closure.Error {
	e := &closure.Error{Message: "the function failed, and its host did not say how"}
	if o.Error != nil {
		e = bounded(o.Error)
	}
	e.Closure = it.ID
	if e.Task == "" {
		e.Task = o.Task
	}
	return e
}
