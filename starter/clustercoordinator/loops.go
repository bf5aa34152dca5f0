package clustercoordinator

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// answerFirst limits how long a schedule request waits for the outcomes of lone calls.
const answerFirst = 20 * time.Millisecond

// send sends the scheduled closures, one request at a time, until the coordinator is closed.
func (c *Coordinator) send() {
	for {
		if c.await(c.ctx, func() bool { return len(c.unsent) > 0 || c.broken != nil }) != nil {
			return
		}
		c.mu.Lock()
		if c.broken != nil {
			c.mu.Unlock()
			return
		}
		batch, r := c.next()
		c.change()
		c.mu.Unlock()
		a, err := c.queue.Schedule(c.ctx, r)
		if err != nil {
			for _, v := range batch {
				v.end(nil, err)
			}
			c.fail(err)
			return
		}
		c.sent(batch, r, a)
	}
}

// next takes the closures for a request.
func (c *Coordinator) next() ([]*RemoteValue, closure.ScheduleRequest) {
	c.batch++
	r := closure.ScheduleRequest{Client: c.name, Batch: c.batch, Released: c.released, After: c.taken}
	c.released = nil
	known, n, size := map[uint64]bool{}, 0, 0
	for n < len(c.unsent) && n < closure.MaxBatch {
		v := c.unsent[n]
		size += v.size
		if n > 0 && size > closure.MaxBatchBytes {
			break
		}
		r.Closures = append(r.Closures, v.closure)
		for _, one := range v.resources {
			if !known[one.ID] {
				known[one.ID] = true
				r.Resources = append(r.Resources, one)
			}
		}
		n++
	}
	batch := c.unsent[:n:n]
	c.unsent, c.sending = c.unsent[n:], n
	r.Wait = len(c.open) == 0 && len(c.unsent) == 0 && !c.taking && n < c.room
	return batch, r
}

// sent handles a request's answer.
func (c *Coordinator) sent(batch []*RemoteValue, r closure.ScheduleRequest, a closure.ScheduleAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending, c.room = 0, a.Room
	for i, v := range batch {
		id := a.First + uint64(i)
		o, ended := c.early[id]
		switch {
		case a.First > 0 && ended:
			v.ended(o)
		case a.Raised != nil:
			v.ended(closure.Outcome{Kind: closure.OutcomeCancelled})
		case c.broken != nil:
			v.end(nil, c.broken)
		default:
			c.open[id] = v
		}
	}
	clear(c.early)
	c.settle(r.After, a.Outcomes)
	if a.Raised != nil {
		// The rest were scheduled before the caller could learn of the error.
		for _, v := range c.unsent {
			v.ended(closure.Outcome{Kind: closure.OutcomeCancelled})
		}
		c.unsent, c.raised = nil, a.Raised
	}
	c.change()
}

// take receives outcomes until the coordinator is closed.
func (c *Coordinator) take() {
	for {
		var batch uint64
		if c.await(c.ctx, func() bool { batch = c.batch; return len(c.open)+c.sending > 0 || c.broken != nil }) != nil {
			return
		}
		// The answer to a schedule request may contain the outcomes.
		soon, cancel := context.WithTimeout(c.ctx, answerFirst)
		_ = c.await(soon, func() bool {
			return len(c.open)+len(c.unsent) > 0 || c.sending == 0 || c.batch != batch || c.broken != nil
		})
		cancel()
		c.mu.Lock()
		c.taking = len(c.open) > 0 || c.sending > 0 && c.batch == batch
		r, taking, broken := closure.TakeRequest{Client: c.name, After: c.taken}, c.taking, c.broken
		c.mu.Unlock()
		switch {
		case broken != nil:
			return
		case !taking:
			continue
		}
		a, err := c.queue.Take(c.ctx, r)
		if err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		c.taking = false
		c.settle(r.After, a.Outcomes)
		c.change()
		c.mu.Unlock()
	}
}

// settle applies the outcomes that follow the first after ones. Some may already have come in
// another answer. c.mu must be held.
func (c *Coordinator) settle(after uint64, outcomes []closure.Outcome) {
	outcomes = outcomes[min(uint64(len(outcomes)), c.taken-after):]
	c.taken += uint64(len(outcomes))
	for _, o := range outcomes {
		if v := c.open[o.ID]; v != nil {
			delete(c.open, o.ID)
			v.ended(o)
		} else if c.sending > 0 {
			c.early[o.ID] = o
		}
	}
}
