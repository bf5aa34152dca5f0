package rules

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// BatchEnded records the result of a batch.
func (q *Queue) BatchEnded(number int, r closure.BatchResult) {
	b := q.close(number)
	if b == nil {
		return
	}
	q.adapt(b, r)
	left := b.Items
	take := func(id uint64) *Item {
		i := slices.IndexFunc(left, func(it *Item) bool { return it.ID == id })
		if i < 0 {
			return nil
		}
		it := left[i]
		left = slices.Delete(left, i, i+1)
		return it
	}
	for _, o := range r.Outcomes {
		if it := take(o.ID); it != nil {
			q.outcome(it, o)
		}
	}
	calling := &Batch{Queue: r.Queue, Calling: true, Cancelled: b.Cancelled}
	for _, id := range r.Calling {
		if it := take(id); it != nil {
			calling.Items = append(calling.Items, it)
		}
	}
	for _, it := range left {
		q.putBack(it)
	}
	if len(calling.Items) > 0 {
		q.startCalling(calling)
	}
	q.sweep()
	q.advance()
}

// startCalling makes a batch that waits for calls which a host has already started. If the queue is
// about to continue as new, the next execution does that.
func (q *Queue) startCalling(b *Batch) {
	if q.Drain != "" && !b.ofPool() {
		b.Cancelled = true
	}
	if !q.suspended {
		q.start(b)
		return
	}
	q.LastBatch++
	b.Number = q.LastBatch
	q.Batches = append(q.Batches, b)
}

// BatchFailed records that a batch's host is gone, or that the batch was cancelled before a host
// took it.
func (q *Queue) BatchFailed(number int) {
	b := q.close(number)
	if b == nil {
		return
	}
	for _, it := range b.Items {
		if b.Calling {
			q.Counts.Lost++
			if it.Task != "" {
				q.giveUp(it, it.Task+" was lost with its host", it.Task)
				continue
			}
		}
		q.putBack(it)
	}
	q.sweep()
	q.advance()
}

func (q *Queue) close(number int) *Batch {
	i := slices.IndexFunc(q.Batches, func(b *Batch) bool { return b.Number == number })
	if i < 0 {
		return nil
	}
	b := q.Batches[i]
	q.Batches = slices.Delete(q.Batches, i, i+1)
	delete(q.open, number)
	return b
}

// adapt increases the number of closures per batch if calls are short, and resets it to one if they
// are long.
func (q *Queue) adapt(b *Batch, r closure.BatchResult) {
	switch {
	case b.Calling || b.ofPool():
	case len(r.Returned) > 0 || len(r.Calling) > 0:
		q.Most = 1
	case r.Took <= shortCall*len(b.Items):
		q.Most = min(maxInBatch, 2*max(1, q.Most))
	}
}

// outcome records the end of a call.
func (q *Queue) outcome(it *Item, o closure.Outcome) {
	if o.Error != nil {
		o.Error.Closure = it.ID
		if o.Error.Task == "" && o.Kind != closure.OutcomeUnavailable {
			o.Error.Task = o.Task
		}
	}
	switch o.Kind {
	case "", closure.OutcomeValue, closure.OutcomeCancelled:
		q.finish(it, o)
	case closure.OutcomeLost:
		q.lost(it, o)
	case closure.OutcomeUnavailable:
		q.unavailable(it, o)
	default:
		q.finish(it, o)
		q.fail(it, o.Failure())
	}
}

// lost records that a process exited during the call. A closure that keeps killing processes fails;
// otherwise it would stop the whole run.
func (q *Queue) lost(it *Item, o closure.Outcome) {
	q.Counts.Lost++
	it.Losses++
	if it.Task == "" && (it.Losses <= closure.MaxLosses || q.Drain != "") {
		q.putBack(it)
		return
	}
	q.giveUp(it, fmt.Sprintf("closure %d (%s) is not retried again: %s exited while executing it, the last one on %s",
		it.ID, it.Function, units.Count(it.Losses, "process", "processes"), o.Task), o.Task)
}

// giveUp completes a closure with an error.
func (q *Queue) giveUp(it *Item, message, task string) {
	e := &closure.Error{Kind: closure.ErrQuarantined, Message: message, Closure: it.ID, Task: task}
	q.finish(it, closure.Outcome{Kind: closure.OutcomeError, Error: e, Task: task})
	q.fail(it, e)
}

// unavailable records a report that a task which the function needs, such as a parameter server,
// does not answer. Reports that do not name a task are counted together.
func (q *Queue) unavailable(it *Item, o closure.Outcome) {
	e := o.Failure()
	e.Kind = closure.ErrUnavailable
	q.Unavailable[e.Task]++
	if q.Unavailable[e.Task] < q.config.TransientUnavailable || q.Drain != "" && it.Task == "" {
		q.putBack(it)
		return
	}
	q.finish(it, closure.Outcome{Kind: closure.OutcomeUnavailable, Error: e, Task: o.Task})
	if it.Task != "" {
		delete(q.Unavailable, e.Task)
	}
	q.fail(it, e)
}

// fail sets the queue's error, unless it is already set.
func (q *Queue) fail(it *Item, e *closure.Error) {
	if it.Task == "" && q.Fault == nil {
		q.Fault = e
	}
}

// putBack returns a closure to the queue or, if everything is being cancelled, ends it.
func (q *Queue) putBack(it *Item) {
	if q.Drain != "" && it.Task == "" {
		q.finish(it, closure.Outcome{Kind: closure.OutcomeCancelled})
		return
	}
	q.enqueue(it)
}
