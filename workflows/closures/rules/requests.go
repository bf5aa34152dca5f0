package rules

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Call is a client's request, which may be answered later.
type Call struct {
	closure.SyncRequest // Closures are not queued yet
	client              *Client
	ready               bool
	answer              closure.SyncAnswer
	err                 error
}

// Ready reports whether there is an answer.
func (c *Call) Ready() bool { return c.ready }

// Answer returns the answer, or the reason for refusing the request.
func (c *Call) Answer() (closure.SyncAnswer, error) { return c.answer, c.err }

func (c *Call) refuse(err error) { c.ready, c.err = true, err }

// ofPool reports whether the request's closures are those of a pool.
func (c *Call) ofPool() bool { return len(c.Closures) > 0 && c.Closures[0].Task != "" }

func (q *Queue) endedError() error { return fmt.Errorf("%w: %s", ErrEnded, q.ended) }

// Sync handles a client's request, which must be valid. Any older request from the client is
// answered, because the client has abandoned it.
func (q *Queue) Sync(r closure.SyncRequest) *Call {
	call := &Call{SyncRequest: r}
	if q.ended != "" {
		call.refuse(q.endedError())
		return call
	}
	call.client = q.client(r.Client)
	if err := q.drop(call.client, r); err != nil {
		call.refuse(err)
		return call
	}
	if len(r.Closures) > 0 {
		call.Closures = r.Closures[min(len(r.Closures), int(call.client.Scheduled+1-r.First)):] //nolint:gosec // drop has compared them
	}
	if i := slices.IndexFunc(q.calls, func(older *Call) bool { return older.client == call.client }); i >= 0 {
		q.reply(q.calls[i])
		q.calls[i] = call
	} else {
		q.calls = append(q.calls, call)
	}
	q.define(r.Resources)
	q.release(r.Released)
	q.advance()
	return call
}

// advance does everything that has become possible.
func (q *Queue) advance() {
	if q.ended != "" {
		return
	}
	for q.settleDrain() {
	}
	// Had these clients known of the error, they would not have scheduled these closures.
	for _, c := range q.calls {
		raised := slices.ContainsFunc(c.client.Outcomes, func(o closure.Outcome) bool { return o.Kind == closure.OutcomeRaised })
		if c.Client == q.Drain || raised {
			q.take(c, func(it *Item) { q.finish(it, closure.Outcome{Kind: closure.OutcomeCancelled}) })
		}
	}
	if q.Drain == "" {
		q.admit()
	}
	q.give()
	q.answerCalls()
}

// settleDrain starts a drain if there is an error and a request that raises it, and completes the
// drain if nothing is executing. It reports whether a further drain may start.
func (q *Queue) settleDrain() bool {
	if q.Drain == "" {
		i := slices.IndexFunc(q.calls, func(c *Call) bool { return c.Join || len(c.Closures) > 0 && !c.ofPool() })
		if q.Fault == nil || i < 0 {
			return false
		}
		q.Drain = q.calls[i].Client
		q.cancelWaiting()
		for _, b := range q.Batches {
			q.cancel(b)
		}
	}
	if slices.ContainsFunc(q.Batches, func(b *Batch) bool { return !b.ofPool() }) {
		return false
	}
	if q.Fault.Kind == closure.ErrUnavailable {
		delete(q.Unavailable, q.Fault.Task)
	}
	q.keep(q.Drain, closure.Outcome{Kind: closure.OutcomeRaised, Error: q.Fault})
	q.Drain, q.Fault = "", nil
	return true
}

// cancelWaiting cancels the closures that are not in a batch.
func (q *Queue) cancelWaiting() {
	waiting := q.Waiting
	q.Waiting = nil
	for _, it := range waiting {
		if it.Task != "" {
			q.Waiting = append(q.Waiting, it)
			continue
		}
		q.bytes -= it.Size()
		q.finish(it, closure.Outcome{Kind: closure.OutcomeCancelled})
	}
	q.sweep()
}

// admit queues the closures of waiting requests, in the order of the requests, as long as they fit.
func (q *Queue) admit() {
	for _, c := range q.calls {
		if q.hasRoom(c) {
			q.take(c, q.enqueue)
			q.give()
		} else if q.give(); q.hasRoom(c) {
			q.take(c, q.enqueue)
		} else {
			return
		}
	}
}

func (q *Queue) hasRoom(c *Call) bool {
	bytes := q.bytes
	for i := range c.Closures {
		bytes += c.Closures[i].Size()
	}
	return len(q.Waiting) == 0 || len(q.Waiting)+len(c.Closures) <= q.config.Size && bytes <= closure.MaxQueueBytes
}

// take accepts a request's closures.
func (q *Queue) take(c *Call, as func(*Item)) {
	for _, one := range c.Closures {
		q.Last++
		c.client.Scheduled++
		q.Counts.Scheduled++
		it := &Item{Closure: one, Client: c.Client, Number: c.client.Scheduled}
		it.ID = q.Last
		as(it)
	}
	c.Closures = nil
}

// busy reports whether something is queued or executing.
func (q *Queue) busy() bool {
	return slices.ContainsFunc(q.Waiting, func(it *Item) bool { return it.Task == "" }) ||
		slices.ContainsFunc(q.Batches, func(b *Batch) bool { return !b.ofPool() }) ||
		slices.ContainsFunc(q.calls, func(c *Call) bool { return len(c.Closures) > 0 && !c.ofPool() })
}

// answerCalls answers the requests that need not wait any longer.
func (q *Queue) answerCalls() {
	busy := q.busy() || q.Drain != ""
	q.calls = slices.DeleteFunc(q.calls, func(c *Call) bool {
		switch {
		case len(c.client.Outcomes) > 0:
		case len(c.Closures) > 0, c.Wait && (!c.Join || busy), c.Join && q.Drain != "":
			return false
		}
		q.reply(c)
		return true
	})
}

// reply answers a request with everything that its client has not yet received.
func (q *Queue) reply(c *Call) {
	all, n, size := c.client.Outcomes, 0, 0
	for n < len(all) && n < closure.MaxBatch && (n == 0 || size < closure.MaxBatchBytes) {
		size += sizeOf(all[n])
		n++
	}
	c.ready = true
	c.answer = closure.SyncAnswer{
		Outcomes: all[:n:n], Scheduled: c.client.Scheduled, Failed: q.Fault != nil,
		Done: c.Join && n == len(all) && q.Fault == nil && !q.busy(),
	}
	if q.bytes < closure.MaxQueueBytes {
		c.answer.Room = max(0, q.config.Size-len(q.Waiting))
	}
}
