package rules

import (
	"cmp"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// host is a host worker. Two on the same machine are two hosts.
type host struct {
	name, queue string
	seq         int64
	// broker identifies the life of the host worker. Leases end with it. former is the
	// life before it.
	broker, former string
	serving        []closure.ServingTask
	// The next fields are derived from serving: tasks has the slots of each task, slots is
	// their sum, and functions are the functions that at least one task has registered.
	tasks     map[string]int
	slots     int
	functions map[string]bool
	// more reports whether a task has registered functions beyond those that can be remembered.
	more bool

	// window is the most closures that the host may hold.
	window int
	// held is the number of closures that it holds, and pinned the number of those that only a
	// certain task may call, by task.
	held   int
	pinned map[string]int
	// leases are the open ones, and rest are closures that the host holds and no lease names.
	leases []*lease
	rest   []*item
	// told are closures that the next request to the host cancels.
	told []uint64
	// doubted reports whether a lease was lost since the host's last message.
	doubted bool
	// slow and packs become leases with the next [Queue.Actions].
	slow, packs []*pack

	// given spans the resources that its processes may have built. gone spans the released ones
	// among them that it does not know of yet, and releasing the resources in the [ReleaseOn]
	// with the number release, which is on its way.
	given, gone, releasing span
	release                int
	// unreachable reports whether a ReleaseOn has failed since the host's last message.
	unreachable bool
}

// lease has closures that a host was given together.
type lease struct {
	number int
	host   *host
	items  []*item
	// released spans the resources whose release it reports.
	released span
	// probing reports whether the host was already doubted when it got the lease.
	probing bool
}

// Bounds of the closures that a host is given.
const (
	// maxSlots bounds the slots of a task that are believed.
	maxSlots = 10_000
	// spareLeases is the number of leases that may be open in addition to one for each slot.
	spareLeases = 4
	maxWindow   = 2 * closure.MaxBatch
)

func compareHosts(a, b *host) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.queue, b.queue))
}

// Serving records which tasks of a host serve.
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
		// Its processes may be older than the known ones.
		h.given = q.resources.span()
		h.gone = h.given
	}
	q.serve(h, m.Serving)
	q.forget(h)
	q.advance() // more slots are room for more
}

// outdated reports whether a message is older than the known state of a host. Numbers of
// another life cannot be compared: they come from the clock of the host, which may have been
// put back.
func (q *dispatcher) outdated(h *host, m closure.ServingMessage) bool {
	if m.Broker == h.broker {
		return m.Seq <= h.seq
	}
	return m.Broker != "" && m.Broker == h.former
}

// anew leases the closures of a host again after its host worker was restarted. The server
// would offer it the open leases only after their heartbeat timeout. The host takes closures
// that it has lost for new ones. Outcomes that the open leases still return count.
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
	// The last host worker may not have passed on releases of resources.
	h.gone, h.releasing = h.given, span{}
}

// serve sets the tasks of a host. The window grows and shrinks with the slots.
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
	if len(serving) == 0 { // no task could receive a release
		h.given, h.gone, h.releasing = span{}, span{}, span{}
	}
}

// forget drops a host that serves nothing and holds nothing.
func (q *dispatcher) forget(h *host) {
	if len(h.serving) == 0 && h.held == 0 && len(h.leases) == 0 {
		q.hosts = slices.DeleteFunc(q.hosts, func(o *host) bool { return o == h })
	}
}

// ahead is the amount of work that a host is given in advance, in milliseconds: enough to keep
// it busy while results travel, and little enough that no closure waits there while another
// host is idle.
const ahead = 200

// adapt sets the window of a host by the rate at which it ended closures during a lease. It
// moves in steps, because a few short calls say little about later ones, and grows only if
// the whole window was used and more is queued. If the rate is unknown, the window doubles
// after the host was idle, and halves if it ended little of what it holds. A host that gives
// closures back may hold no more than it can call at once.
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

// waitsFor reports whether a closure is queued that the host could call.
func (q *dispatcher) waitsFor(h *host) bool {
	return slices.ContainsFunc(q.queues.list, func(l *functionQueue) bool { return l.live > 0 && q.suits(h, l.queueKey) })
}

// suits reports whether a task of the host may call the closures in a function's queue. A
// function that no task has registered may go to any host, where its call fails with that
// error.
func (q *dispatcher) suits(h *host, name queueKey) bool {
	if name.task != "" {
		return h.tasks[name.task] > 0
	}
	return h.slots > 0 && (h.functions[name.function] || q.seen.never(name.function) || h.more && q.seen.beyond(name.function))
}

// hasRoom reports whether the host may hold one more closure. If only one task may call it,
// it may exceed the window while the task has fewer of these than slots, and these may take
// no more than the task's share of the window. So neither kind blocks the other.
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
	if it.Task != "" {
		h.pinned[it.Task]++
	}
}

// drop removes an item from the items that the host holds.
func (h *host) drop(it *item) {
	it.host, it.lease = nil, 0
	h.held--
	if it.Task != "" {
		if h.pinned[it.Task]--; h.pinned[it.Task] == 0 {
			delete(h.pinned, it.Task)
		}
	}
}

// each calls do with each item that the host holds.
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
