package rules

import "github.com/clusterrun/clusterrun/workflows/closures/closure"

// backlog has the closures that have not ended.
type backlog struct {
	items  map[uint64]*item // by ID, for look-ups only: ranging over a map has no order
	queues functionQueues
	lastID uint64
	// queued are the closures in queues, and executing the closures that hosts hold.
	queued, executing tally
	bytes             int

	resources resources
	// dropped are dropped resources that hosts do not know of yet.
	dropped []uint64
	decided decisions
	counts  closure.QueueCounts
	// firstEnded and lastEnded bound the IDs that ended since New or Restore.
	firstEnded, lastEnded uint64
}

// tally counts closures.
type tally struct {
	all      int
	attached int // those that are not detached
}

// count adds n for a closure.
func (t *tally) count(it *item, n int) {
	t.all += n
	if !it.detached() {
		t.attached += n
	}
}

// add queues an item for the first time.
func (q *backlog) add(it *item) {
	q.counts.Scheduled++
	q.items[it.ID] = it
	q.queues.of(it).append(it)
	q.queued.count(it, 1)
}

// takeOut removes an item from its queue or from the host that holds it.
func (q *backlog) takeOut(it *item) {
	if it.host != nil {
		it.host.drop(it)
		q.executing.count(it, -1)
	} else {
		it.queue.remove(it)
		q.queued.count(it, -1)
	}
}

// end removes a closure that has ended, and increments one of the counts.
func (q *backlog) end(it *item, count *uint64) {
	q.takeOut(it)
	delete(q.items, it.ID)
	q.bytes -= it.size
	q.useNoMore(it.Resources)
	*count++
	q.noteEnded(it.ID, it.ID)
}

// cancel ends a closure as cancelled, by the queue's own decision.
func (q *backlog) cancel(it *item) {
	q.end(it, &q.counts.Cancelled)
	q.decided.cancel(it.ID, it.ID)
}

// noteEnded notes that closures with these IDs, or some of them, have ended.
func (q *backlog) noteEnded(first, last uint64) {
	if q.firstEnded == 0 || first < q.firstEnded {
		q.firstEnded = first
	}
	q.lastEnded = max(q.lastEnded, last)
}

// Ended returns bounds of the IDs of the closures that ended since [New] or [Restore], or 0 if
// none has.
func (q *backlog) Ended() (first, last uint64) { return q.firstEnded, q.lastEnded }

// attachedOpen returns the number of attached closures that have not ended.
func (q *backlog) attachedOpen() int { return q.queued.attached + q.executing.attached }
