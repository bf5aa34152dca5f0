package rules

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// requests answers requests, some of which wait, and keeps the error that they raise.
type requests struct {
	dispatcher
	clients clients
	// waitlist are requests that wait, the oldest first. partial is a request whose closures
	// have IDs, but not all have room yet; it comes before the waitlist.
	waitlist []*request
	partial  *request
	// fault is the queue's error. drain is the request that gets it when nothing executes.
	fault *closure.Error
	drain *request
	// last is the error that was raised last. It may still be pending for some clients.
	last  *closure.Error
	peers peers
	// idleEpoch counts, from 1, the times at which no closure but detached ones was open.
	idleEpoch uint64
	// tooLarge is the number of closures that were open when the queue was too large to
	// continue as new, or 0 if it was not. As long as it is set and closures are open, the
	// queue takes no more.
	tooLarge int
	ended    string // how the run has ended
}

// request is a request that waits, or did.
type request struct {
	client *client
	kind   kind
	number uint64

	// Of a schedule:
	schedule *Call[closure.ScheduleAnswer]
	epoch    uint64
	closures []closure.Closure
	// detached reports whether all of its closures are detached. Then it neither raises errors
	// nor waits for joins.
	detached bool
	// left are the closures that have IDs but are not queued yet.
	first uint64
	left  []*item

	// Of a join, or a done:
	wait *Call[closure.WaitAnswer]
}

type kind int

const (
	asksSchedule kind = iota
	asksJoin
	asksDone
)

// maxWaiting bounds the requests that wait.
const maxWaiting = 1000

// Schedule queues closures. It is answered once there was room for all of them, or with the
// queue's error. The workflow's validator must have called [Queue.CheckSchedule].
func (q *requests) Schedule(r closure.ScheduleRequest) *Call[closure.ScheduleAnswer] {
	c := q.clients.asking(r.Client)
	known, err := c.batches.find(r.Batch)
	switch {
	case err != nil:
		return refused[closure.ScheduleAnswer](fmt.Errorf("schedule of client %s: %w", r.Client, err))
	case known != nil:
		return known
	case q.ended != "":
		return refused[closure.ScheduleAnswer](q.endedError("schedule closures"))
	case len(q.waitlist) >= maxWaiting:
		return refused[closure.ScheduleAnswer](ErrTooMany)
	}
	call := &Call[closure.ScheduleAnswer]{}
	q.clients.bytes -= c.batches.add(r.Batch, call)
	// If the client was forgotten, it knows its epoch better.
	c.epoch = max(c.epoch, r.Epoch)
	for i := range r.Closures {
		q.use(r.Closures[i].Resources)
	}
	q.waitlist = append(q.waitlist, &request{
		client: c, kind: asksSchedule, number: r.Batch, schedule: call, epoch: r.Epoch, closures: r.Closures,
		detached: !slices.ContainsFunc(r.Closures, func(c closure.Closure) bool { return c.Task == "" }),
	})
	q.advance()
	return call
}

// Join waits until nothing is queued or executing, or raises the queue's error. The
// workflow's validator must have called [Queue.CheckWait].
func (q *requests) Join(r closure.WaitRequest) *Call[closure.WaitAnswer] {
	return q.waitFor(r, asksJoin)
}

// Done reports whether nothing is queued or executing, or raises the queue's error.
// It waits only for that.
func (q *requests) Done(r closure.WaitRequest) *Call[closure.WaitAnswer] {
	return q.waitFor(r, asksDone)
}

func (q *requests) waitFor(r closure.WaitRequest, kind kind) *Call[closure.WaitAnswer] {
	c := q.clients.asking(r.Client)
	known, err := c.waits.find(r.Call)
	switch {
	case err != nil:
		return refused[closure.WaitAnswer](fmt.Errorf("join or done of client %s: %w", r.Client, err))
	case known != nil:
		return known
	case q.ended != "":
		return refused[closure.WaitAnswer](q.endedError("wait for closures"))
	case len(q.waitlist) >= maxWaiting:
		return refused[closure.WaitAnswer](ErrTooMany)
	}
	call := &Call[closure.WaitAnswer]{}
	q.clients.bytes -= c.waits.add(r.Call, call)
	q.waitlist = append(q.waitlist, &request{client: c, kind: kind, number: r.Call, wait: call})
	q.advance()
	return call
}

// answerBytes is the size that counts for an answer without an error.
const answerBytes = 8

// answer answers a schedule.
func (q *requests) answer(r *request, raised *closure.Error, cancelled bool) {
	a := closure.ScheduleAnswer{First: r.first, Epoch: r.client.epoch, Raised: raised, Cancelled: cancelled}
	if q.config.QueueSize > 0 {
		a.Room = new(q.room())
	}
	r.schedule.give(a)
	bytes := answerBytes + errorBytes(raised)
	r.client.batches.weigh(r.number, bytes)
	q.clients.answered(r.client, bytes)
}

// answerWait answers a join or a done.
func (q *requests) answerWait(r *request, raised *closure.Error, done bool) {
	if done {
		r.client.busy = 0
	}
	r.wait.give(closure.WaitAnswer{Done: done, Epoch: r.client.epoch, Raised: raised})
	bytes := answerBytes + errorBytes(raised)
	r.client.waits.weigh(r.number, bytes)
	q.clients.answered(r.client, bytes)
}

func errorBytes(e *closure.Error) int {
	if e == nil {
		return 0
	}
	return len(e.Kind) + len(e.Message) + len(e.Traceback) + len(e.Task)
}

func (q *requests) endedError(what string) error {
	return fmt.Errorf("%w: %s; it is too late to %s", ErrEnded, q.ended, what)
}
