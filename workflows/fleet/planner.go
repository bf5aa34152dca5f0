package fleet

import (
	"slices"
	"strings"
	"time"
)

// planner finds places for runs on a roster's hosts. It does not know the queue. The caller tries
// the runs in queue order, and protects capacity for those that must wait.
type planner struct {
	roster
	now     time.Time
	classes map[string]*class
	// open counts the ready hosts that no run guards in this decision.
	open int
	// Searches reuse seats and choice; look-aheads reuse uses and ends.
	seats  []seat
	choice []*seat
	uses   []use
	ends   []int64
}

// unguard removes all guards, at the start of a decision.
func (p *planner) unguard() {
	p.open = 0
	for _, h := range p.hosts {
		h.guard, h.ready = guard{}, h.state() == HostReady
		if h.ready {
			p.open++
		}
	}
}

// try returns places for a run now, or nil.
func (p *planner) try(r *run) []place {
	return p.search(r, p.class(r).hosts, func(h *host) room { return p.roomFor(r, h) })
}

// search returns places for a run on hosts with the given capacity, or nil.
func (p *planner) search(r *run, hosts []*host, rooms func(*host) room) []place {
	p.seats = p.seats[:0]
	for _, h := range hosts {
		if free := rooms(h); free.slots > 0 {
			p.seats = append(p.seats, seat{host: h, number: len(p.seats), from: free, lax: p.class(r).lax, prefer: r.preference(h)})
		}
	}
	p.choice = p.choice[:0]
	slots := 0
	for i := range p.seats {
		p.choice = append(p.choice, &p.seats[i])
		slots += min(p.seats[i].from.slots, r.shape.tasks)
	}
	if slots < r.shape.tasks {
		return nil
	}
	return r.shape.places(p.choice)
}

func (p *planner) class(r *run) *class {
	if r.class == nil || r.class.version != p.version {
		r.class = p.classOf(&r.Demand)
		r.over = r.class.slots > 0 && r.shape.tasks > r.class.slots && r.shape.max >= len(r.class.hosts)
	}
	return r.class
}

// roomFor returns the host capacity that a run may use now.
func (p *planner) roomFor(r *run, h *host) room {
	if h.room.slots <= 0 && len(r.held) == 0 || !r.open(h) {
		return room{}
	}
	free, alone := h.free(r)
	if r.Demand.Exclusive && !alone {
		return room{}
	}
	if !h.guard.on || r.endsBy(p.now, h.guard.until) {
		return free
	}
	own, _ := h.share(r)
	if r.Demand.Exclusive && own == (room{}) {
		return room{}
	}
	rest := room{own.slots + max(0, h.guard.rest.slots), own.gpus + max(0, h.guard.rest.gpus)}
	if listed := h.guard.listed; len(listed) > 0 && r.shape.hasGPUs {
		rest.gpus = min(rest.gpus, h.unlisted(r, listed))
	}
	return room{min(free.slots, rest.slots), min(free.gpus, rest.gpus)}
}

// openFor returns the hosts that may accept a run's tasks.
func (p *planner) openFor(r *run) []*host {
	list := make([]*host, 0, len(p.class(r).hosts))
	for _, h := range p.class(r).hosts {
		if r.open(h) {
			list = append(list, h)
		}
	}
	return list
}

// couldStart reports whether a run could start if its open hosts were empty.
func (p *planner) couldStart(r *run, hosts []*host) bool { return p.search(r, hosts, r.all) != nil }

// classOf returns the hosts for a demand.
func (p *planner) classOf(d *Demand) *class {
	key := strings.Join(d.Select, "\x00")
	bound := !slices.ContainsFunc(d.Groups, func(g Group) bool { return g.Host == "" })
	if bound {
		for _, g := range d.Groups {
			key += "\x01" + g.Host
		}
	}
	if c := p.classes[key]; c != nil {
		return c
	}
	c := &class{version: p.version}
	p.classes[key] = c
	for _, h := range p.hosts {
		if bound && !slices.ContainsFunc(d.Groups, func(g Group) bool { return g.Host == h.Name }) {
			continue
		}
		if selects(d.Select, h.Name) {
			c.hosts = append(c.hosts, h)
		}
	}
	c.lax = !slices.ContainsFunc(c.hosts, func(h *host) bool { return len(h.GPUs) > 0 })
	if !slices.ContainsFunc(c.hosts, func(h *host) bool { return !h.Oversubscribe || h.Slots == 0 }) {
		for _, h := range c.hosts {
			c.slots += h.Slots
		}
	}
	return c
}

// forgetClasses marks all classes as stale, because the hosts have changed.
func (p *planner) forgetClasses() {
	clear(p.classes)
	p.version++
}
