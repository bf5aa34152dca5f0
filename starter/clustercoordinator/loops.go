package clustercoordinator

import (
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// send sends what was scheduled, one request after the other, until the coordinator is closed.
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
		c.sent(batch, a)
	}
}

// next takes the closures of a request.
func (c *Coordinator) next() ([]*RemoteValue, closure.ScheduleRequest) {
	c.batch++
	r := closure.ScheduleRequest{Client: c.name, Batch: c.batch, Released: c.released}
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
	return batch, r
}

// sent handles the answer to a request.
func (c *Coordinator) sent(batch []*RemoteValue, a closure.ScheduleAnswer) {
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
	if a.Raised != nil {
		// The others were scheduled before the caller could know of the error.
		for _, v := range c.unsent {
			v.ended(closure.Outcome{Kind: closure.OutcomeCancelled})
		}
		c.unsent, c.raised = nil, a.Raised
	}
	c.change()
}

// take takes the outcomes of closures, until the coordinator is closed.
func (c *Coordinator) take() {
	for {
		if c.await(c.ctx, func() bool { return len(c.open)+c.sending > 0 || c.broken != nil }) != nil {
			return
		}
		a, err := c.queue.Take(c.ctx, closure.TakeRequest{Client: c.name, After: c.taken})
		if err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		c.taken += uint64(len(a.Outcomes))
		for _, o := range a.Outcomes {
			if v := c.open[o.ID]; v != nil {
				delete(c.open, o.ID)
				v.ended(o)
			} else if c.sending > 0 {
				c.early[o.ID] = o
			}
		}
		c.change()
		c.mu.Unlock()
	}
}
