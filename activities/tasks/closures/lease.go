package closures

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const (
	// soon is the time that the first outcome of a lease waits for others. It is inAFlood if
	// most of the lease has not begun, since all processes have work then.
	soon     = 5 * time.Millisecond
	inAFlood = 20 * time.Millisecond
	// keptFor is the time for which closures without a lease are held.
	keptFor = time.Minute
)

// lease is a call of Lease that waits for outcomes.
type lease struct {
	entries []*entry
	// ready are the closures that have ended, in that order, since is the time at which the
	// first of them ended, and bytes is the size of their outcomes.
	ready []*entry
	since time.Time
	bytes int
	// wake has an element when something may have changed.
	wake chan struct{}
	// taken is the time at which the lease arrived, and before is the number of closures that
	// the broker had ended by then.
	taken  time.Time
	before int
}

// hasEnded adds e to the ended closures of the lease, and wakes the lease.
func (l *lease) hasEnded(e *entry) {
	if len(l.ready) == 0 {
		l.since = time.Now()
	}
	l.ready = append(l.ready, e)
	l.bytes += e.size
	l.notify()
}

func (l *lease) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Lease brings closures to be called, and waits for their outcomes and for the outcomes of the
// closures that the broker holds and the lease names. It returns once all have ended, or
// earlier with some outcomes rather than delay them for the rest. Its end, also by ctx, ends no
// call: the next lease that names a closure takes it over.
func (b *Broker) Lease(ctx context.Context, in closure.Lease) (closure.LeaseResult, error) {
	l := &lease{wake: make(chan struct{}, 1), taken: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	l.before = b.finished
	if b.isClosed() {
		return closure.LeaseResult{}, ErrClosed
	}
	for i := range in.Closures {
		if in.Closures[i].ID == 0 {
			return closure.LeaseResult{}, fmt.Errorf("closures[%d] has no ID", i)
		}
	}
	for i := range in.Closures {
		b.attach(l, &in.Closures[i])
	}
	b.resources.learn(in.Resources)
	b.cancel(in.Cancelled, in.Grace)
	b.release(in.Released)
	b.dispatch()
	b.tellReleased()
	defer b.detach(l)
	for {
		wait := l.due(time.Now())
		if wait <= 0 {
			return b.collect(l), nil
		}
		if err := b.await(ctx, l, wait); err != nil {
			return closure.LeaseResult{}, err
		}
	}
}

// await waits, without the lock, until something may have changed for a lease.
func (b *Broker) await(ctx context.Context, l *lease, wait time.Duration) error {
	b.mu.Unlock()
	defer b.mu.Lock()
	var passed <-chan time.Time
	if wait < forever {
		t := time.NewTimer(wait)
		defer t.Stop()
		passed = t.C
	}
	select {
	case <-l.wake:
	case <-passed:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-b.ctx.Done():
		return ErrClosed
	}
	return nil
}

// attach attaches a closure to a lease.
func (b *Broker) attach(l *lease, c *closure.Closure) {
	if o, ok := b.delivered.outcomes[c.ID]; ok {
		e := &entry{closure: *c, known: true, state: ended, outcome: o, size: sizeOf(o), lease: l}
		l.entries = append(l.entries, e)
		l.hasEnded(e)
		return
	}
	e := b.entries[c.ID]
	switch {
	case e == nil:
		e = &entry{closure: *c, known: true}
		b.add(e)
		if b.cancelled.contains(c.ID) {
			b.doom(e)
		} else {
			b.enqueue(e)
		}
	case !e.known:
		e.known, e.closure = true, *c
		b.resources.refer(c.Resources)
	default:
		e.closure.Attempt = max(c.Attempt, e.closure.Attempt)
	}
	if e.lease == l {
		return
	}
	if e.lease != nil {
		e.lease.lose(e)
	}
	e.lease = l
	l.entries = append(l.entries, e)
	if e.state == ended {
		l.hasEnded(e)
	}
}

// lose removes a closure that another lease has taken over.
func (l *lease) lose(e *entry) {
	l.entries = without(l.entries, e)
	if e.state == ended {
		l.ready = without(l.ready, e)
		l.bytes -= e.size
	}
	l.notify()
}

func without(list []*entry, e *entry) []*entry {
	return slices.DeleteFunc(list, func(o *entry) bool { return o == e })
}

const forever = time.Duration(1<<63 - 1)

// due returns the time that the lease should wait for further outcomes.
func (l *lease) due(now time.Time) time.Duration {
	switch {
	case len(l.ready) == len(l.entries):
		return 0
	case len(l.ready) == 0:
		return forever
	case len(l.ready) >= closure.MaxBatch, 2*len(l.ready) >= len(l.entries), l.bytes >= closure.MaxBatchBytes:
		return 0
	}
	// A call that has taken long will probably take longer.
	waiting, short := 0, 0
	for _, e := range l.entries {
		switch {
		case e.state == queued, e.state == given && !e.begun:
			waiting++
		case e.state == given && now.Sub(e.at) < soon:
			short++
		}
	}
	switch {
	case waiting == 0 && short == 0:
		return 0
	case 2*waiting > len(l.entries):
		return inAFlood - now.Sub(l.since)
	}
	return soon - now.Sub(l.since)
}

// collect takes the outcomes that are ready, as many as may be returned at once.
func (b *Broker) collect(l *lease) closure.LeaseResult {
	out := closure.LeaseResult{Done: b.finished - l.before, Took: 1 + int(time.Since(l.taken).Milliseconds())}
	taken := map[*entry]bool{}
	bytes := 0
	for _, e := range l.ready {
		if len(taken) > 0 && (bytes+e.size > closure.MaxBatchBytes || len(taken) >= closure.MaxBatch) {
			break
		}
		bytes += e.size
		taken[e] = true
		o := e.verdict()
		out.Outcomes = append(out.Outcomes, o)
		if o.Kind == "" || o.Kind.Final() {
			b.delivered.add(o)
		}
		if b.entries[o.ID] == e {
			b.drop(e)
		}
	}
	rest := l.entries[:0]
	for _, e := range l.entries {
		if !taken[e] {
			rest = append(rest, e)
			out.Rest = append(out.Rest, e.closure.ID)
		}
	}
	l.entries = rest
	for _, p := range b.waiting {
		out.Idle = out.Idle || p.request.free > 0
	}
	return out
}

// detach removes the lease from the closures that it has not returned.
func (b *Broker) detach(l *lease) {
	for _, e := range l.entries {
		if e.lease == l {
			b.noLease(e)
		}
	}
}

// noLease records that no lease waits for a closure.
func (b *store) noLease(e *entry) {
	e.lease, e.since = nil, time.Now()
	b.forgetLater()
}

// forgetLater schedules the removal of closures that no lease names again.
func (b *store) forgetLater() {
	if b.forgetting == nil && !b.isClosed() {
		b.forgetting = time.AfterFunc(keptFor, b.forgetOld)
	}
}

func (b *store) forgetOld() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetting = nil
	next := forever
	for _, e := range b.entries {
		// A call must end first: until then no other process may call the closure.
		if e.lease != nil || e.state == given {
			continue
		}
		if left := keptFor - time.Since(e.since); left > 0 {
			next = min(next, left)
			continue
		}
		if e.state == queued {
			b.queue.remove(e)
		}
		b.drop(e)
	}
	if next < forever && !b.isClosed() {
		b.forgetting = time.AfterFunc(next, b.forgetOld)
	}
}
