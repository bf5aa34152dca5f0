package rules

import (
	"cmp"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// host is one host worker: another one on the same machine is another host.
type host struct {
	name, queue string
	seq         int64
	// broker is the life of the host worker: another one does not answer for the
	// leases of this. former is the one before, which is over.
	broker, former string
	serving        []closure.ServingTask
	// What follows is made from serving: slots are those of each task and of all of
	// them, functions what at least one of them has registered.
	tasks     map[string]int
	slots     int
	functions map[string]bool
	// more reports whether a task has registered functions beyond those that can be remembered.
	more bool

	// window is how many closures the host may hold.
	window int
	// held is how many it holds, and pinned how many of them only a certain task may
	// call.
	held   int
	pinned map[string]int
	// leases are open. rest are held and in none of them.
	leases []*lease
	rest   []*item
	// told are to be cancelled there, of which it does not know yet.
	told []uint64
	// doubted reports whether a lease was lost and the host has not been heard of since.
	doubted bool
	// slow and packs are going to be leases; see pack.
	slow, packs []*pack

	// given spans the resources that its processes may have built. gone spans those of
	// them that it has to be told are gone, and releasing those that it is being told
	// of, by the [ReleaseOn] with the number release.
	given, gone, releasing span
	release                int
	// unreachable reports whether the host could not be told and has not been heard of since.
	unreachable bool
}

// lease are closures that a host was given together.
type lease struct {
	number int
	host   *host
	items  []*item
	// released spans the resources of which it says that they are gone.
	released span
	// probing reports whether the host was already doubted when it got the lease.
	probing bool
}

// Bounds of what is open towards one host.
const (
	// maxSlots bounds the slots of a task that are believed.
	maxSlots = 10_000
	// spareLeases are how many leases beyond one for each slot may be open.
	spareLeases = 4
	maxWindow   = 2 * closure.MaxBatch
)

func compareHosts(a, b *host) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.queue, b.queue))
}

// Serving takes in which tasks of a host serve.
func (q *Queue) Serving(m closure.ServingMessage) {
	if m.Over != "" {
		q.RunEnded(m.Over)
		return
	}
	at, known := slices.BinarySearchFunc(q.hosts, &host{name: m.Host, queue: m.Queue}, compareHosts)
	switch {
	case q.ended != "" || known && q.outdated(q.hosts[at], m):
		return
	case !known && len(m.Serving) == 0:
		return
	case !known:
		q.hosts = slices.Insert(q.hosts, at, &host{name: m.Host, queue: m.Queue, pinned: map[string]int{}})
	}
	h := q.hosts[at]
	h.seq, h.unreachable = m.Seq, false
	q.doubt(h, false)
	if h.broker != m.Broker {
		if h.broker != "" {
			q.anew(h)
		}
		h.broker, h.former = m.Broker, h.broker
	}
	if len(h.serving) == 0 {
		// Its processes may be older than what is known of it.
		h.given = q.resources.span()
		h.gone = h.given
	}
	q.serve(h, m.Serving)
	q.forget(h)
	q.advance() // more slots are room for more
}

// outdated reports whether a message is older than what is known of a host. The numbers
// of another life say nothing about that: they come from the clock of the host, which may
// have been put back.
func (q *dispatcher) outdated(h *host, m closure.ServingMessage) bool {
	if m.Broker == h.broker {
		return m.Seq <= h.seq
	}
	return m.Broker != "" && m.Broker == h.former
}

// anew leases everything again that a host holds. The host worker was started again,
// and its server would offer it the leases it had only when they have been silent for
// long. What it has lost it takes for new. What they still bring counts.
func (q *dispatcher) anew(h *host) {
	for _, l := range h.leases {
		for _, it := range l.items {
			if it.lease != l.number {
				continue
			}
			it.lease = 0
			h.rest = append(h.rest, it)
			if it.told {
				h.told = append(h.told, it.ID)
			}
		}
		delete(q.leases, l.number)
	}
	h.leases = nil
	// What the one before was told of released resources it may not have passed on.
	h.gone, h.releasing = h.given, span{}
}

// serve sets the tasks of a host. The window keeps its proportion to the slots.
func (q *dispatcher) serve(h *host, serving []closure.ServingTask) {
	before := h.slots
	h.serving, h.slots, h.more = slices.Clone(serving), 0, false
	q.workers = nil
	h.tasks, h.functions = map[string]int{}, map[string]bool{}
	for i, t := range serving {
		slots := min(max(t.Slots, 0), maxSlots)
		h.slots += slots
		h.tasks[t.Task] += slots
		remembered := make([]string, 0, len(t.Functions))
		for _, f := range t.Functions {
			if q.seen.add(f) {
				h.functions[f] = true
				remembered = append(remembered, f)
			} else {
				h.more = true
			}
		}
		h.serving[i].Functions = remembered
	}
	if before > 0 {
		h.window = h.window / before * h.slots
	}
	h.window = max(h.window, h.slots)
	if len(serving) == 0 { // nobody can be told
		h.given, h.gone, h.releasing = span{}, span{}, span{}
	}
}

// forget drops a host that serves nothing and holds nothing.
func (q *dispatcher) forget(h *host) {
	if len(h.serving) == 0 && h.held == 0 && len(h.leases) == 0 {
		q.hosts = slices.DeleteFunc(q.hosts, func(o *host) bool { return o == h })
	}
}

// ahead is how much work a host is given in advance, in milliseconds: enough for it
// to stay busy while results travel, and not so much that closures lie there which
// another host could call.
const ahead = 200

// adapt makes the window of a host fit the pace at which it ended closures during a
// lease: in steps, because a few short calls say little about those that come, and
// it grows only where the whole window was used and more is queued. Of a host that
// does not tell its pace, one that was idle can hold twice as much, and one that
// finished little of what it holds needs less. One that gives some back is given no more
// than it can call at once.
func (q *dispatcher) adapt(h *host, r closure.LeaseResult) {
	if slices.ContainsFunc(r.Outcomes, func(o closure.Outcome) bool { return o.Kind == closure.OutcomeLost && !o.Started }) {
		h.window = h.slots // it has more than it can call
		return
	}
	want := h.window
	switch {
	case r.Took > 0:
		want = max(min(r.Done*ahead/r.Took, 4*h.window), h.window/2)
	case r.Idle:
		want = 2 * h.window
	case len(r.Outcomes) < h.window/4:
		want = h.window / 2
	}
	switch {
	case want > h.window && h.held >= h.window && q.waitsFor(h):
		h.window = min(want, max(maxWindow, h.slots))
	case want < h.window && !r.Idle && len(r.Rest) > 0:
		h.window = max(want, h.slots)
	}
}

// waitsFor reports whether something is queued that the host could call.
func (q *dispatcher) waitsFor(h *host) bool {
	return slices.ContainsFunc(q.queues.list, func(l *functionQueue) bool { return l.live > 0 && q.suits(h, l.queueKey) })
}

// suits reports whether a task of the host may call what is in a function's queue. A
// function that no task has ever registered may go anywhere, where its call fails with that.
func (q *dispatcher) suits(h *host, name queueKey) bool {
	if name.task != "" {
		return h.tasks[name.task] > 0
	}
	return h.slots > 0 && (h.functions[name.function] || q.seen.never(name.function) || h.more && q.seen.beyond(name.function))
}

// hasRoom reports whether the host may hold one closure more for a task. What only
// one task may call gets past the window as long as the task has fewer of them than
// slots, and takes no more than its share of the window: so neither stands in the
// way of the other.
func (h *host) hasRoom(task string) bool {
	switch {
	case h.doubted:
		return h.held == 0 // one, to see whether it answers
	case task == "":
		return h.held < h.window
	}
	slots, n := h.tasks[task], h.pinned[task]
	return n < slots || h.held < h.window && n < h.window*slots/h.slots
}

func (h *host) hold(it *item) {
	it.host = h
	h.held++
	if task := it.task(); task != "" {
		h.pinned[task]++
	}
}

// drop: the host does not hold the item any more.
func (h *host) drop(it *item) {
	it.host, it.lease = nil, 0
	h.held--
	if task := it.task(); task != "" {
		if h.pinned[task]--; h.pinned[task] == 0 {
			delete(h.pinned, task)
		}
	}
}

// each are the items the host holds.
func (h *host) each(do func(*item)) {
	for _, l := range h.leases {
		for _, it := range l.items {
			if it.lease == l.number {
				do(it)
			}
		}
	}
	for _, it := range h.rest {
		if it.host == h && it.lease == 0 {
			do(it)
		}
	}
}

func (h *host) takeTold() []uint64 {
	told := h.told
	h.told = nil
	slices.Sort(told)
	return slices.Compact(told)
}
