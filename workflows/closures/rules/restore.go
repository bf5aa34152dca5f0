package rules

import (
	"cmp"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Restore returns the queue of a snapshot. The next [Queue.Actions] leases the closures of
// hosts again, and repeats the requests to cancel closures.
func Restore(c Config, s *Snapshot) *Queue {
	q := New(c)
	q.lastID, q.lastLease, q.counts = s.LastID, s.LastLease, s.Counts
	q.ended, q.fault, q.last, q.peers = s.Ended, s.Fault, s.Last, s.Peers
	for _, name := range s.Seen {
		q.seen.add(name)
	}
	for _, saved := range s.Resources {
		q.resources.add(&resource{Resource: saved.Resource, owner: owner{saved.Client, saved.Task, saved.Process}, released: saved.Released})
	}
	q.resources.last = s.LastResource
	for _, saved := range s.Hosts {
		q.restoreHost(s, saved)
	}
	for _, saved := range s.Clients {
		q.restoreClient(saved)
	}
	q.drain, q.partial = q.restoreRequest(s.Drain), q.restoreRequest(s.Partial)
	q.restoreClosures(s)
	for _, r := range slices.Clone(q.resources.list) {
		q.drop(r.ID) // if only requests that waited used it
	}
	return q
}

func (q *Queue) restoreHost(s *Snapshot, saved savedHost) {
	h := &host{name: saved.Name, queue: saved.Queue, pinned: map[string]int{}}
	var serving []closure.ServingTask
	for _, t := range saved.Tasks {
		serving = append(serving, closure.ServingTask{Task: t.Task, Process: t.Process, Slots: t.Slots, Functions: q.seen.of(s.Sets[t.Set])})
	}
	q.hosts = append(q.hosts, h)
	q.serve(h, serving)
	h.seq, h.broker, h.former = saved.Seq, saved.Broker, saved.Former
	q.doubt(h, saved.Doubted)
	h.more = saved.More
	h.window = saved.Window
	h.given, h.gone = saved.Given, saved.Gone
}

func (q *Queue) restoreClient(saved savedClient) {
	c := q.clients.asking(saved.Name)
	c.epoch, c.pendingError = saved.Epoch, saved.Pending
	if saved.Busy {
		c.busy = q.idleEpoch
	}
	restoreAnswers(&c.batches, saved.Batches)
	restoreAnswers(&c.waits, saved.Waits)
	restoreAnswers(&c.resources, saved.Resources)
	q.clients.bytes += c.batches.bytes() + c.waits.bytes() + c.resources.bytes()
}

func restoreAnswers[A any](a *answers[A], s savedAnswers[A]) {
	a.forgotten, a.open = s.Forgotten, s.Open
	for _, n := range s.List {
		call := &Call[A]{}
		call.give(n.Answer)
		a.list = append(a.list, numbered[A]{n.Number, call, n.Bytes})
	}
}

// restoreRequest restores a request that has already done something.
func (q *Queue) restoreRequest(s *savedRequest) *request {
	if s == nil {
		return nil
	}
	c := q.clients.named[s.Client]
	r := &request{client: c, kind: s.Kind, number: s.Number, detached: s.Detached, first: s.First}
	if r.kind == asksSchedule {
		r.schedule = &Call[closure.ScheduleAnswer]{}
		c.batches.insert(s.Number, r.schedule)
	} else {
		r.wait = &Call[closure.WaitAnswer]{}
		c.waits.insert(s.Number, r.wait)
	}
	return r
}

func (q *Queue) restoreClosures(s *Snapshot) {
	id := uint64(0)
	for _, saved := range s.Closures {
		id = cmp.Or(saved.ID, id+1)
		it := newItem(saved.Closure, id)
		it.Attempt = saved.Attempt
		it.told, it.returns, it.losses, it.lostOn = saved.Told, saved.Returns, saved.Losses, saved.LostOn
		q.bytes += it.size
		q.use(it.Resources)
		switch {
		case saved.Partial:
			q.partial.left = append(q.partial.left, it)
		case saved.Host > 0:
			q.items[id] = it
			q.restoreHeld(q.hosts[saved.Host-1], it)
		default:
			q.items[id] = it
			q.queues.of(it).append(it)
			q.queued.count(it, 1)
		}
	}
}

func (q *Queue) restoreHeld(h *host, it *item) {
	h.hold(it)
	h.rest = append(h.rest, it)
	q.executing.count(it, 1)
	if it.told {
		q.tell(it)
	}
}
