package rules

import (
	"container/heap"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// dispatcher gives closures to hosts.
type dispatcher struct {
	backlog
	config    Config
	hosts     []*host                // by name and queue
	workers   []closure.WorkerStatus // see sortedWorkers
	leases    map[int]*lease
	lastLease int
	seen      functions
	// lastRelease is the number of the last [ReleaseOn] since New or Restore.
	lastRelease int
}

// source is a function's queue with the hosts that may still get something of it.
type source struct {
	queue *functionQueue
	head  *item
	hosts candidates
}

type sources []source

func (s sources) Len() int           { return len(s) }
func (s sources) Less(i, j int) bool { return s[i].head.ID < s[j].head.ID }
func (s sources) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *sources) Push(x any)        { *s = append(*s, x.(source)) }
func (s *sources) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	(*s)[last], *s = source{}, (*s)[:last]
	return x
}

// fill gives out queued closures, in the order of IDs, as long as there are hosts with room for
// them. A closure without a host does not keep back later ones. fill reports whether it gave
// out anything.
func (q *dispatcher) fill() bool {
	if q.queued.all == 0 {
		return false
	}
	q.queues.sweep()
	next := make(sources, 0, len(q.queues.list))
	for _, l := range q.queues.list {
		if hosts := q.roomFor(l.queueKey); len(hosts) > 0 {
			next = append(next, source{l, l.head(), hosts})
		}
	}
	heap.Init(&next)
	gave := false
	for len(next) > 0 {
		s := &next[0]
		h := s.choose()
		if h == nil {
			heap.Pop(&next)
			continue
		}
		s.queue.pop()
		q.give(h, s.head)
		gave = true
		if s.head = s.queue.head(); s.head == nil {
			heap.Pop(&next)
		} else {
			heap.Fix(&next, 0)
		}
	}
	return gave
}

// candidate is a host as it was when it was last looked at.
type candidate struct {
	host *host
	held int
}

// candidates is a heap of hosts. The host that holds least for its slots is first.
type candidates []candidate

func (c candidates) Len() int           { return len(c) }
func (c candidates) Less(i, j int) bool { return c[i].before(c[j]) }
func (c candidates) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)        { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	*c = (*c)[:last]
	return x
}

// before reports whether the host should get the next closure rather than the other one.
// Doubted hosts come last, and equal ones in the order of their names.
func (c candidate) before(o candidate) bool {
	if c.host.doubted != o.host.doubted {
		return o.host.doubted
	}
	if mine, other := c.held*o.host.slots, o.held*c.host.slots; mine != other {
		return mine < other
	}
	return compareHosts(c.host, o.host) < 0
}

// roomFor returns the hosts that may get something of a function's queue.
func (q *dispatcher) roomFor(name queueKey) candidates {
	var hosts candidates
	for _, h := range q.hosts {
		if q.suits(h, name) && h.hasRoom(name.task) {
			hosts = append(hosts, candidate{h, h.held})
		}
	}
	heap.Init(&hosts)
	return hosts
}

// choose returns the host that gets the head, or nil if none has room. The load of a host only
// grows during a fill. So a host that has got more than it had comes later, and a host without
// room is not tried again.
func (s *source) choose() *host {
	for len(s.hosts) > 0 {
		switch c := &s.hosts[0]; {
		case !c.host.hasRoom(s.queue.task) || !c.host.fits(s.head):
			heap.Pop(&s.hosts)
		case c.held != c.host.held:
			c.held = c.host.held
			heap.Fix(&s.hosts, 0)
		default:
			return c.host
		}
	}
	return nil
}

// give puts a closure into the host's next lease.
func (q *dispatcher) give(h *host, it *item) {
	q.queued.count(it, -1)
	q.executing.count(it, 1)
	it.Attempt++
	it.returns = 0
	h.hold(it)
	h.packs = addTo(h.packs, it, &q.resources)
}

// pack collects closures for a lease.
type pack struct {
	items     []*item
	size      int
	resources []uint64
}

// fits reports whether the host may get the item without exceeding its leases.
func (h *host) fits(it *item) bool {
	if n := len(h.packs); n > 0 && h.packs[n-1].fits(it) {
		return true
	}
	return len(h.leases)+len(h.slow)+len(h.packs) < h.maxLeases()
}

func (h *host) maxLeases() int { return h.slots + spareLeases }

func (p *pack) fits(it *item) bool {
	return len(p.items) < closure.MaxBatch && p.size+it.size <= closure.MaxBatchBytes
}

// addTo puts an item into the last pack, or into a new one. The definition of a resource
// counts once in each pack.
func addTo(packs []*pack, it *item, resources *resources) []*pack {
	if n := len(packs); n == 0 || !packs[n-1].fits(it) {
		packs = append(packs, &pack{})
	}
	p := packs[len(packs)-1]
	p.items = append(p.items, it)
	p.size += it.size
	for _, id := range it.Resources {
		if at, found := slices.BinarySearch(p.resources, id); !found {
			p.resources = slices.Insert(p.resources, at, id)
			p.size += resources.sizeOf(id)
		}
	}
	return packs
}

// slowReturns is the number of leases after which a closure that has not ended counts as slow.
const slowReturns = 3

// packHeld packs what hosts hold and no lease names. Slow closures get a lease of their own:
// with quick ones they would be sent again, arguments included, each time one of those ends.
func (q *dispatcher) packHeld() {
	for _, h := range q.hosts {
		if len(h.rest) == 0 {
			continue
		}
		rest := h.rest
		h.rest = nil
		slices.SortFunc(rest, byID)
		apart := len(h.leases)+1 < h.maxLeases()
		for _, it := range rest {
			switch {
			case it.host != h || it.lease != 0: // it has ended, or gone elsewhere
			case apart && it.returns >= slowReturns:
				h.slow = addTo(h.slow, it, &q.resources)
			default:
				h.packs = addTo(h.packs, it, &q.resources)
			}
		}
	}
}

func (h *host) takePacks() []*pack {
	packs := append(h.slow, h.packs...)
	h.slow, h.packs = nil, nil
	return packs
}

// lease returns the lease that a pack becomes.
func (q *dispatcher) lease(h *host, p *pack) Dispatch {
	q.lastLease++
	l := &lease{number: q.lastLease, host: h, items: p.items, probing: h.doubted}
	q.leases[l.number] = l
	h.leases = append(h.leases, l)
	d := Dispatch{Number: l.number, Host: h.name, TaskQueue: h.queue, Lease: closure.Lease{Closures: make([]closure.Closure, len(p.items))}}
	for i, it := range p.items {
		it.lease = l.number
		d.Closures[i] = it.Closure
		if it.told {
			d.Cancelled = append(d.Cancelled, it.ID)
		}
	}
	for _, id := range p.resources {
		if r := q.resources.get(id); r != nil {
			d.Resources = append(d.Resources, r.Resource)
			h.given.cover(span{id, id})
		}
	}
	d.Released = q.releaseWith(h, l)
	return d
}
