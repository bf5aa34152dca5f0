package rules

import (
	"cmp"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const (
	// maxInBatch limits the closures per batch.
	maxInBatch = 100
	// maxBatches limits the batches, because a workflow may have at most 2,000 pending activities.
	maxBatches = 1500
	// shortCall is the maximum duration, in milliseconds, of calls that make batches grow.
	shortCall = 10
)

func (b *Batch) ofPool() bool { return len(b.Items) > 0 && b.Items[0].Task != "" }

// enqueue inserts a closure into the queue, which is ordered by ID.
func (q *Queue) enqueue(it *Item) {
	i, _ := slices.BinarySearchFunc(q.Waiting, it, func(a, b *Item) int { return cmp.Compare(a.ID, b.ID) })
	q.Waiting = slices.Insert(q.Waiting, i, it)
	q.bytes += it.Size()
}

// give makes batches of waiting closures.
func (q *Queue) give() {
	if q.suspended || q.ended != "" {
		return
	}
	if q.kept > maxKept {
		if q.forgetClients(); q.kept > maxKept {
			return
		}
	}
	q.givePools()
	slots := q.slots()
	for q.Drain == "" && len(q.Batches) < min(2*slots, maxBatches) {
		// At most as many batches are queued as hosts are executing.
		most := min(max(1, q.Most), max(1, len(q.Waiting)/(2*slots)))
		n, size := 0, 0
		for n < len(q.Waiting) && n < most && q.Waiting[n].Task == "" {
			it := q.Waiting[n]
			if n > 0 && (n >= most || size+it.Size() > closure.MaxBatchBytes) {
				break
			}
			size += it.Size()
			n++
		}
		if n == 0 {
			return
		}
		q.start(&Batch{Items: slices.Clone(q.Waiting[:n])})
		q.Waiting = q.Waiting[n:]
		q.bytes -= size
	}
}

// givePools gives the pools' closures to their tasks' hosts.
func (q *Queue) givePools() {
	waiting := q.Waiting
	if !slices.ContainsFunc(waiting, func(it *Item) bool { return it.Task != "" && q.queueOf(it.Task) != "" }) {
		return
	}
	q.Waiting = nil
	var batches []*Batch
	for _, it := range waiting {
		queue := ""
		if it.Task != "" {
			queue = q.queueOf(it.Task)
		}
		if queue == "" {
			q.Waiting = append(q.Waiting, it)
			continue
		}
		q.bytes -= it.Size()
		i := slices.IndexFunc(batches, func(b *Batch) bool { return b.Queue == queue && len(b.Items) < maxInBatch })
		if i < 0 {
			batches, i = append(batches, &Batch{Queue: queue}), len(batches)
		}
		batches[i].Items = append(batches[i].Items, it)
	}
	for _, b := range batches {
		q.start(b)
	}
}

func (q *Queue) start(b *Batch) {
	q.LastBatch++
	b.Number = q.LastBatch
	q.Batches = append(q.Batches, b)
	q.act(b, false)
}

// cancel cancels a batch's closures.
func (q *Queue) cancel(b *Batch) {
	if !b.ofPool() && !b.Cancelled {
		b.Cancelled = true
		q.act(b, true)
	}
}

// Input returns a batch activity's input, without its run and grace.
func (q *Queue) Input(b *Batch) (in closure.Batch) {
	in.Released = q.Released
	if b.Calling {
		for _, it := range b.Items {
			in.Calling = append(in.Calling, it.ID)
		}
		return in
	}
	used := map[uint64]bool{}
	for _, it := range b.Items {
		in.Closures = append(in.Closures, it.Closure)
		for _, id := range it.Resources {
			used[id] = true
		}
	}
	for _, r := range q.Resources {
		if used[r.ID] {
			in.Resources = append(in.Resources, r)
		}
	}
	return in
}
