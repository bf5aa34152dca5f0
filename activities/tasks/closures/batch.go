package closures

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const (
	// longCall is the duration at which a call delays other calls too much.
	longCall = 100 * time.Millisecond
	// soon is how long a long call's outcome waits for further outcomes.
	soon = 5 * time.Millisecond
	// returnsWithin limits the time an earlier broker's processes take to report their calls. They
	// ask five times a second.
	returnsWithin = 2 * time.Second
)

// batch is a batch that waits for its closures.
type batch struct {
	calls []*call
	// own reports whether the batch is from this host's queue.
	own   bool
	taken time.Time
	// progress is the time of the last start or return of a call.
	progress time.Time
	wake     chan struct{} // signaled after a call returned
}

// Run lets processes call a batch's closures, and waits for their outcomes and for the outcomes of
// calls that started earlier. It returns early if outcomes or closures would wait for a long call,
// or if ctx is cancelled. The calls continue, and another batch may wait for them. own reports
// whether the batch is from this host's queue.
func (b *Broker) Run(ctx context.Context, in closure.Batch, own bool) (closure.BatchResult, error) {
	now := time.Now()
	bt := &batch{own: own, taken: now, progress: now, wake: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosed() {
		return closure.BatchResult{}, ErrClosed
	}
	for _, r := range in.Resources {
		b.resources[r.ID] = r
	}
	b.drop(in.Released)
	for _, one := range in.Closures {
		c := b.calls[one.ID]
		if c == nil {
			c = &call{Closure: one}
			b.calls[one.ID] = c
			b.queue = append(b.queue, c)
		}
		c.Closure = one
		bt.attach(c)
	}
	// A later batch has the first waiting closures if they were put back.
	slices.SortStableFunc(b.queue, byID)
	b.await(ctx, bt, in.Calling)
	for _, id := range in.Calling {
		if c := b.calls[id]; c != nil {
			bt.attach(c)
			if in.Grace > 0 {
				b.cancel(c, in.Grace)
			}
		}
	}
	b.change()
	b.dispatch()
	for {
		wait := bt.due(time.Now())
		if wait <= 0 {
			return b.collect(bt), nil
		}
		if !b.wait(ctx, bt.wake, wait) {
			if b.isClosed() {
				b.collect(bt)
				return closure.BatchResult{}, ErrClosed
			}
			return b.collect(bt), nil
		}
	}
}

// await waits briefly until the processes have reported an earlier broker's calls.
func (b *Broker) await(ctx context.Context, bt *batch, calling []uint64) {
	for {
		wait := time.Until(b.started.Add(returnsWithin))
		if wait <= 0 || !slices.ContainsFunc(calling, func(id uint64) bool { return b.calls[id] == nil }) {
			return
		}
		if !b.wait(ctx, b.changed, wait) {
			return
		}
	}
}

// wait waits, without the lock, until it is woken or d has passed. It returns false if ctx or the
// broker is done.
func (b *Broker) wait(ctx context.Context, wake <-chan struct{}, d time.Duration) bool {
	b.mu.Unlock()
	defer b.mu.Lock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-wake:
	case <-t.C:
	case <-ctx.Done():
		return false
	case <-b.ctx.Done():
		return false
	}
	return true
}

func (bt *batch) attach(c *call) {
	if c.batch == bt {
		return
	}
	if c.batch != nil { // its host was presumed lost
		c.batch.calls = slices.DeleteFunc(c.batch.calls, func(o *call) bool { return o == c })
		c.batch.notify()
	}
	c.batch = bt
	bt.calls = append(bt.calls, c)
}

func (bt *batch) notify() {
	select {
	case bt.wake <- struct{}{}:
	default:
	}
}

// forEver is longer than any batch takes.
const forEver = time.Duration(1<<63 - 1)

// due returns how long the batch should wait for more outcomes.
func (bt *batch) due(now time.Time) time.Duration {
	ended, waiting, bytes := 0, 0, 0
	for _, c := range bt.calls {
		switch {
		case c.outcome != nil:
			ended++
			bytes += sizeOf(c.outcome)
		case c.process == nil && c.Task == "":
			waiting++
		}
	}
	switch {
	case ended == len(bt.calls), bytes >= closure.MaxBatchBytes:
		return 0
	case ended+waiting == 0:
		return forEver
	case ended > 0 && bt.own:
		return soon - now.Sub(bt.progress) // the remaining calls take at least as long
	}
	return longCall - now.Sub(bt.progress)
}

// collect ends a batch, and returns its result.
func (b *Broker) collect(bt *batch) closure.BatchResult {
	out := closure.BatchResult{Queue: b.Queue, Took: int(time.Since(bt.taken).Milliseconds())}
	bytes := 0
	for _, c := range bt.calls {
		c.batch = nil
		if c.outcome != nil {
			bytes += sizeOf(c.outcome)
		}
		switch {
		case c.outcome != nil && bytes > closure.MaxBatchBytes && len(out.Outcomes) > 0:
			out.Calling = append(out.Calling, c.ID) // left to the next batch
		case c.outcome != nil:
			out.Outcomes = append(out.Outcomes, *c.outcome)
			delete(b.calls, c.ID)
		case c.process != nil:
			out.Calling = append(out.Calling, c.ID)
		default:
			out.Returned = append(out.Returned, c.ID)
			b.queue = slices.DeleteFunc(b.queue, func(o *call) bool { return o == c })
			delete(b.calls, c.ID)
		}
	}
	b.change()
	return out
}

// overhead is the approximate JSON size of an outcome without its value and error.
const overhead = 96

// sizeOf returns an outcome's size as JSON, in bytes.
func sizeOf(o *closure.Outcome) int {
	n := overhead + len(o.Value)
	if o.Error != nil {
		text, _ := json.Marshal(o.Error) // escaping can enlarge strings considerably
		n += len(text)
	}
	return n
}

// finish sets a call's outcome, unless it is set.
func (b *Broker) finish(c *call, o closure.Outcome) {
	if c.outcome != nil {
		return
	}
	if b.Ended != nil {
		b.Ended(o.Kind)
	}
	if p := c.process; p != nil {
		delete(p.has, c.ID)
		if o.Task == "" {
			o.Task = p.task
		}
	}
	o.ID = c.ID
	c.process, c.outcome = nil, &o
	if c.batch != nil {
		c.batch.progress = time.Now()
		c.batch.notify()
		return
	}
	b.change()
}

// putBack queues a closure that its process did not start.
func (b *Broker) putBack(c *call) {
	delete(c.process.has, c.ID)
	c.process = nil
	switch {
	case c.told:
		b.finish(c, cancelledOutcome(""))
	case c.batch == nil:
		delete(b.calls, c.ID) // the queue resends it, or has
	default:
		i, _ := slices.BinarySearchFunc(b.queue, c, byID)
		b.queue = slices.Insert(b.queue, i, c)
		c.batch.notify()
	}
}

func byID(a, b *call) int {
	switch {
	case a.ID < b.ID:
		return -1
	case a.ID > b.ID:
		return 1
	}
	return 0
}

// drop makes processes drop the resources that they have built.
func (b *Broker) drop(released []uint64) {
	clear(b.released)
	for _, id := range released {
		delete(b.resources, id)
		b.released[id] = true
	}
}
