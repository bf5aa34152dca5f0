package clustercoordinator

import (
	"context"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// run sends requests and receives outcomes until the coordinator is closed. It sends one request at
// a time, with everything that the queue may not know yet. A request that is waiting for outcomes
// is abandoned when something changes.
func (c *Coordinator) run() {
	for {
		ctx, abandon := context.WithCancel(c.ctx)
		c.mu.Lock()
		r, wanted := c.next()
		changed := c.changed
		if c.abandon = nil; wanted && r.Wait {
			c.abandon = abandon
		}
		c.mu.Unlock()
		if !wanted {
			abandon()
			select {
			case <-changed:
				continue
			case <-c.ctx.Done():
				return
			}
		}
		a, err := c.queue.Sync(ctx, r)
		abandoned := ctx.Err() != nil
		abandon()
		switch {
		case c.ctx.Err() != nil:
			return
		case err == nil:
			c.answered(r, a)
		case !abandoned:
			c.fail(err)
			return
		}
	}
}

// next returns the next request, and whether it should be sent. c.mu must be held.
func (c *Coordinator) next() (r closure.SyncRequest, wanted bool) {
	r = closure.SyncRequest{Client: c.name, After: c.taken, First: c.scheduled + 1, Released: c.released, Join: c.joining}
	size := 0
	for _, v := range c.sent {
		size += v.size
	}
	for len(c.unsent) > 0 && !c.failed && len(c.sent) < max(1, c.room) {
		v := c.unsent[0]
		if size += v.size; size > closure.MaxBatchBytes && len(c.sent) > 0 {
			break
		}
		c.sent, c.unsent = append(c.sent, v), c.unsent[1:]
		c.open[c.scheduled+uint64(len(c.sent))] = v
	}
	if c.failed && len(c.sent)+len(c.unsent) > 0 {
		r.Join = true // raises the error, which cancels the unsent ones
		return r, true
	}
	known := map[uint64]bool{}
	for _, v := range c.sent {
		r.Closures = append(r.Closures, v.closure)
		for _, one := range v.resources {
			if !known[one.ID] {
				known[one.ID] = true
				r.Resources = append(r.Resources, one)
			}
		}
	}
	r.Wait = (c.waiting || !c.joining) && (len(c.sent) == 0 || len(c.unsent) == 0 && !c.hurry && len(c.sent) < c.room)
	return r, len(c.open) > 0 || c.joining
}

// answered handles a request's answer.
func (c *Coordinator) answered(r closure.SyncRequest, a closure.SyncAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abandon = nil; c.broken != nil {
		return // nothing more can be scheduled
	}
	c.released = c.released[len(r.Released):]
	if c.sent = c.sent[a.Scheduled-c.scheduled:]; len(c.sent)+len(c.unsent) == 0 {
		c.hurry = false
	}
	c.scheduled, c.room, c.failed = a.Scheduled, min(a.Room, closure.MaxBatch), a.Failed
	for _, o := range a.Outcomes {
		c.taken++
		if o.Kind == closure.OutcomeRaised {
			c.raised = o.Error
			for _, v := range c.unsent { // they were scheduled before the caller could know of the error
				v.ended(closure.Outcome{Kind: closure.OutcomeCancelled})
			}
			c.unsent = nil
		} else if v := c.open[o.ID]; v != nil {
			delete(c.open, o.ID)
			v.ended(o)
		}
	}
	if r.Join {
		c.asked, c.done = c.asked+1, a.Done && len(c.open)+len(c.unsent) == 0
	}
	c.change()
}
