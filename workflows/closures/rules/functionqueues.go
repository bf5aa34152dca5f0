package rules

import (
	"container/heap"
	"slices"
)

// functionQueues hold the queued closures, by the properties that decide which hosts may have
// them.
type functionQueues struct {
	named map[queueKey]*functionQueue // for look-ups only: ranging over a map has no order
	list  []*functionQueue
}

type queueKey struct{ task, function string }

// functionQueue has the queued closures of one function for the same task, or for any.
type functionQueue struct {
	queueKey
	// fresh are the items that were never given to a host, from first on, by ID. back are the
	// others, a heap.
	fresh []*item
	first int
	back  items
	// live counts the items that are still queued. The others of fresh and back have ended and
	// are passed over.
	live int
}

func newFunctionQueues() functionQueues { return functionQueues{named: map[queueKey]*functionQueue{}} }

// of returns the queue of an item. Its name replaces the item's, so that a hundred
// thousand closures share one text.
func (qs *functionQueues) of(it *item) *functionQueue {
	name := queueKey{it.Task, it.Function}
	q := qs.named[name]
	if q == nil {
		q = &functionQueue{queueKey: name}
		qs.named[name] = q
		qs.list = append(qs.list, q)
	}
	it.Function = q.function
	return q
}

// sweep forgets queues in which nothing waits.
func (qs *functionQueues) sweep() {
	qs.list = slices.DeleteFunc(qs.list, func(q *functionQueue) bool {
		if q.live == 0 {
			delete(qs.named, q.queueKey)
		}
		return q.live == 0
	})
}

// each calls do for the queued items, in no particular order.
func (qs *functionQueues) each(do func(*item)) {
	for _, q := range qs.list {
		for _, it := range slices.Concat(q.fresh[q.first:], q.back) {
			if it.queue == q {
				do(it)
			}
		}
	}
}

// append queues an item whose ID is higher than all before.
func (q *functionQueue) append(it *item) {
	it.queue = q
	q.live++
	q.fresh = append(q.fresh, it)
}

// putBack queues an item at its place, which nearly always is the first.
func (q *functionQueue) putBack(it *item) {
	it.queue = q
	q.live++
	heap.Push(&q.back, it)
}

// remove takes an item out of the middle.
func (q *functionQueue) remove(it *item) {
	it.queue = nil
	q.live--
	// The ended items must not outgrow the queued ones.
	if len(q.fresh)-q.first+len(q.back) > 2*q.live+64 {
		gone := func(it *item) bool { return it.queue != q }
		q.fresh, q.first = slices.DeleteFunc(q.fresh[q.first:], gone), 0
		q.back = slices.DeleteFunc(q.back, gone)
		heap.Init(&q.back)
	}
}

// head returns the next closure, or nil if the queue has no fresh ones.
func (q *functionQueue) head() *item {
	for q.first < len(q.fresh) && q.fresh[q.first].queue != q {
		q.dropFirst()
	}
	for len(q.back) > 0 && q.back[0].queue != q {
		heap.Pop(&q.back)
	}
	switch {
	case q.first == len(q.fresh) && len(q.back) == 0:
		return nil
	case q.first == len(q.fresh):
		return q.back[0]
	case len(q.back) == 0 || q.fresh[q.first].ID < q.back[0].ID:
		return q.fresh[q.first]
	}
	return q.back[0]
}

// pop takes the head out.
func (q *functionQueue) pop() {
	it := q.head()
	if q.first < len(q.fresh) && q.fresh[q.first] == it {
		q.dropFirst()
	} else {
		heap.Pop(&q.back)
	}
	it.queue = nil
	q.live--
}

func (q *functionQueue) dropFirst() {
	q.fresh[q.first] = nil
	q.first++
	if q.first == len(q.fresh) {
		q.fresh, q.first = q.fresh[:0], 0
	} else if q.first >= 1024 && q.first > len(q.fresh)/2 {
		n := copy(q.fresh, q.fresh[q.first:])
		clear(q.fresh[n:])
		q.fresh, q.first = q.fresh[:n], 0
	}
}
