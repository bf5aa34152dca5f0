package rules

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Call is a request that may be answered later.
type Call[A any] struct {
	ready  bool
	answer A
	err    error
}

// Ready reports whether there is an answer.
func (c *Call[A]) Ready() bool { return c.ready }

// Answer returns the answer, or the reason for refusing the request.
func (c *Call[A]) Answer() (A, error) { return c.answer, c.err }

func (c *Call[A]) give(answer A) { c.ready, c.answer = true, answer }

func (c *Call[A]) refuse(err error) { c.ready, c.err = true, err }

func refused[A any](err error) *Call[A] { return &Call[A]{ready: true, err: err} }

// request is a waiting schedule or join.
type request struct {
	client *Client
	number uint64
	// left lists a schedule's closures that did not fit yet.
	schedule *Call[closure.ScheduleAnswer]
	first    uint64
	left     []*Item
	// A join may be a poll, which waits only for a drain.
	join *Call[closure.WaitAnswer]
	poll bool
	pool bool // a pool's schedule
	wait bool // a schedule that is answered with outcomes
}

func (r *request) refuse(err error) {
	if r.join != nil {
		r.join.refuse(err)
		return
	}
	r.schedule.refuse(err)
}

// raise answers the request with the queue's error.
func (r *request) raise(e *closure.Error) {
	if r.join != nil {
		r.answerJoin(closure.WaitAnswer{Raised: e})
		return
	}
	r.answerSchedule(closure.ScheduleAnswer{First: r.first, Raised: e})
}

func (r *request) answerJoin(a closure.WaitAnswer) {
	r.client.Call, r.client.Joined = r.number, a
	r.join.give(a)
}

func (r *request) answerSchedule(a closure.ScheduleAnswer) {
	r.client.Batch, r.client.Scheduled, r.client.Partial = r.number, a, Partial{}
	r.schedule.give(a)
}

// admitted answers a schedule once its closures are queued.
func (q *Queue) admitted(r *request, a closure.ScheduleAnswer) {
	if !r.wait {
		r.answerSchedule(a)
		return
	}
	q.await(&take{client: r.client, refuse: r.refuse, give: func(o []closure.Outcome) {
		r.answerSchedule(a)
		r.schedule.answer.Outcomes = o
	}})
}

// maxRequests limits the requests that wait.
const maxRequests = 1000

func (q *Queue) endedError() error { return fmt.Errorf("%w: %s", ErrEnded, q.ended) }

// check returns why no request can wait.
func (q *Queue) check() error {
	switch {
	case q.ended != "":
		return q.endedError()
	case len(q.requests)+len(q.takes) >= maxRequests:
		return fmt.Errorf("%d requests wait already; have fewer coordinators", maxRequests)
	}
	return nil
}

// Schedule queues closures. It is answered once all of them are queued, or with the queue's error.
// The request must be valid.
func (q *Queue) Schedule(r closure.ScheduleRequest) *Call[closure.ScheduleAnswer] {
	if err := q.check(); err != nil {
		return refused[closure.ScheduleAnswer](err)
	}
	c := q.client(r.Client)
	call := &Call[closure.ScheduleAnswer]{}
	if r.Batch == c.Batch && r.Batch > 0 {
		call.give(c.Scheduled)
		return call
	}
	if r.Wait {
		if err := q.drop(c, r.After); err != nil {
			return refused[closure.ScheduleAnswer](err)
		}
	}
	w := &request{client: c, number: r.Batch, schedule: call, wait: r.Wait, pool: len(r.Closures) > 0 && r.Closures[0].Task != ""}
	// An earlier execution may have queued some of them.
	queued := 0
	if c.Partial.Batch == r.Batch {
		w.first, queued = c.Partial.First, min(c.Partial.Queued, len(r.Closures))
	}
	for _, one := range r.Closures[queued:] {
		w.left = append(w.left, &Item{Closure: one, Client: r.Client})
	}
	q.define(r.Resources)
	q.requests = append(q.requests, w)
	q.release(r.Released)
	q.advance()
	return call
}

// Join waits until nothing is queued or executing, or raises the queue's error.
func (q *Queue) Join(r closure.WaitRequest) *Call[closure.WaitAnswer] {
	if err := q.check(); err != nil {
		return refused[closure.WaitAnswer](err)
	}
	c := q.client(r.Client)
	call := &Call[closure.WaitAnswer]{}
	if r.Call == c.Call {
		call.give(c.Joined)
		return call
	}
	q.requests = append(q.requests, &request{client: c, number: r.Call, join: call, poll: r.Poll})
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
	if q.drain == nil {
		q.admit()
		q.answerJoins()
	}
	q.give()
	q.answerTakes()
}

// settleDrain starts a drain if there is an error and a request to raise it, and completes it if
// nothing executes. It reports whether a further drain may start.
func (q *Queue) settleDrain() bool {
	if q.drain == nil {
		i := slices.IndexFunc(q.requests, func(r *request) bool { return !r.pool })
		if q.Fault == nil || i < 0 {
			return false
		}
		q.drain = q.requests[i]
		q.requests = slices.Delete(q.requests, i, i+1)
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
	q.drain.raise(q.Fault)
	q.drain, q.Fault = nil, nil
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

// admit queues the closures of schedules that fit.
func (q *Queue) admit() {
	for {
		i := slices.IndexFunc(q.requests, func(r *request) bool { return r.schedule != nil })
		if i < 0 {
			return
		}
		r := q.requests[i]
		for len(r.left) > 0 {
			if !q.hasRoom(r.left[0]) {
				if q.give(); !q.hasRoom(r.left[0]) {
					return
				}
			}
			it := r.left[0]
			r.left = r.left[1:]
			q.Last++
			it.ID = q.Last
			if r.first == 0 {
				r.first = it.ID
			}
			r.client.Partial = Partial{r.number, r.first, r.client.Partial.Queued + 1}
			q.Counts.Scheduled++
			q.enqueue(it)
		}
		q.requests = slices.Delete(q.requests, i, i+1)
		q.give()
		q.admitted(r, closure.ScheduleAnswer{First: r.first, Room: max(0, q.config.Size-len(q.Waiting))})
	}
}

func (q *Queue) hasRoom(it *Item) bool {
	return len(q.Waiting) == 0 || len(q.Waiting) < q.config.Size && q.bytes+it.Size() <= closure.MaxQueueBytes
}

// busy reports whether something is queued or executing.
func (q *Queue) busy() bool {
	return slices.ContainsFunc(q.Waiting, func(it *Item) bool { return it.Task == "" }) ||
		slices.ContainsFunc(q.Batches, func(b *Batch) bool { return !b.ofPool() }) ||
		slices.ContainsFunc(q.requests, func(r *request) bool { return r.schedule != nil && !r.pool })
}

func (q *Queue) answerJoins() {
	busy := q.busy()
	q.requests = slices.DeleteFunc(q.requests, func(r *request) bool {
		if r.join == nil || busy && !r.poll {
			return false
		}
		r.answerJoin(closure.WaitAnswer{Done: !busy})
		return true
	})
}
