package fleet

import (
	"slices"
	"time"
)

// guard keeps room on a host for runs that come first and wait.
type guard struct {
	on bool
	// until is when the first of them has its turn; zero: nobody knows.
	until time.Time
	// rest is the room that none of them has use for, and listed are GPUs that they want by
	// name.
	rest   room
	listed []string
}

// decide grants room to the runs that may have it, in the order of the queue. A run that
// has to wait guards the hosts it could use against those behind it, where no other does so
// already.
func (m *Machine) decide() []Action {
	var actions []Action
	m.unguard()
	for _, r := range slices.Clone(m.waiting) {
		if r.asked && !m.now.Before(m.settled) && len(m.hosts) > 0 {
			r.asked = false
			if err := m.Impossible(r.demand); err != nil && !r.demand.WaitForHosts {
				m.unqueue(r)
				m.forget(r)
				actions = append(actions, Grant{Run: r.id, Generation: r.generation, Try: r.try, Refusal: err.Error()})
				continue
			}
		}
		places := m.offer(r)
		if places == nil {
			m.protect(r)
			continue
		}
		m.grant(r, places)
		actions = append(actions, r.grant())
	}
	for _, r := range m.waiting {
		if len(r.held) > 0 && !r.told {
			r.told = true
			actions = append(actions, Return{Run: r.id, Generation: r.generation})
		}
	}
	return actions
}

// unguard begins a decision: no host is guarded.
func (m *Machine) unguard() {
	m.moment = moment{decision: m.moment.decision + 1}
	m.open = 0
	for _, h := range m.hosts {
		h.guard, h.ready = guard{}, h.state() == HostReady
		if h.ready {
			m.open++
		}
	}
}

// try returns places where a run may go now, or none.
func (m *Machine) try(r *run) []place {
	if m.hopeless(r) {
		return nil
	}
	return m.search(r, m.class(r).hosts, func(h *host) room { return m.roomFor(r, h) })
}

// search returns places for a run on hosts with the room that each has, or none.
func (m *Machine) search(r *run, hosts []*host, rooms func(*host) room) []place {
	m.seats = m.seats[:0]
	for _, h := range hosts {
		if free := rooms(h); free.slots > 0 {
			m.seats = append(m.seats, seat{host: h, number: len(m.seats), from: free, lax: m.class(r).lax, prefer: r.preference(h)})
		}
	}
	m.choice = m.choice[:0]
	slots := 0
	for i := range m.seats {
		m.choice = append(m.choice, &m.seats[i])
		slots += min(m.seats[i].from.slots, r.shape.tasks)
	}
	if slots < r.shape.tasks {
		return nil
	}
	return r.shape.places(m.choice)
}

func (m *Machine) class(r *run) *class {
	if r.class == nil {
		r.class = m.classOf(&r.demand)
		r.over = r.class.slots > 0 && r.shape.tasks > r.class.slots && r.shape.max >= len(r.class.hosts)
	}
	return r.class
}

// preference returns the place of a host among those that a run prefers.
func (r *run) preference(h *host) int {
	if i := slices.Index(r.demand.Prefer, h.Name); i >= 0 {
		return i
	}
	return noBound
}

// open reports whether a host gets tasks of a run.
func (r *run) open(h *host) bool {
	return h.state() == HostReady &&
		(len(r.refusals) == 0 || !slices.ContainsFunc(r.refusals, func(f refusal) bool { return f.host == h.Name }))
}

// roomFor returns the room that a run may have on a host now.
func (m *Machine) roomFor(r *run, h *host) room {
	if h.room.slots <= 0 && len(r.held) == 0 || !r.open(h) {
		return room{}
	}
	free, alone := h.free(r)
	if r.demand.Exclusive && !alone {
		return room{}
	}
	if !h.guard.on || r.endsBy(m.now, h.guard.until) {
		return free
	}
	own, _ := h.share(r)
	if r.demand.Exclusive && own == (room{}) {
		return room{}
	}
	rest := room{own.slots + max(0, h.guard.rest.slots), own.gpus + max(0, h.guard.rest.gpus)}
	if listed := h.guard.listed; len(listed) > 0 && r.shape.hasGPUs {
		rest.gpus = min(rest.gpus, h.unlisted(r, listed))
	}
	return room{min(free.slots, rest.slots), min(free.gpus, rest.gpus)}
}

// endsBy reports whether a run that starts now has ended by then.
func (r *run) endsBy(now, then time.Time) bool {
	return r.demand.MaxRunTime > 0 && !then.IsZero() && !now.Add(r.demand.MaxRunTime).After(then)
}

// grant gives a run its places.
func (m *Machine) grant(r *run, places []place) {
	m.unqueue(r)
	r.state, r.places, r.class = granted, places, nil
	r.grantedAt = m.now
	m.granted = append(m.granted, r)
	if r.demand.MaxRunTime > 0 {
		r.ends = m.now.Add(r.demand.MaxRunTime)
	}
	for i := range places {
		p := &places[i]
		h := m.host(p.Host)
		if p.Devices == nil {
			p.Devices = h.assign(r, p)
			p.gpus = len(p.Devices)
		}
		if h.guard.on && !r.endsBy(m.now, h.guard.until) {
			h.guard.rest.slots -= p.tasks
			h.guard.rest.gpus -= p.gpus
		}
		h.granted = append(h.granted, r)
		h.count()
	}
}

// takeBack takes a grant back that is not placed.
func (m *Machine) takeBack(r *run) {
	if r.state != granted {
		return
	}
	r.state = holding
	m.granted = slices.DeleteFunc(m.granted, func(g *run) bool { return g == r })
	places := r.places
	r.places = nil
	for _, p := range places {
		if h := m.host(p.Host); h != nil {
			h.granted = slices.DeleteFunc(h.granted, func(g *run) bool { return g == r })
			h.count()
		}
	}
}

// grant returns the action that tells a run what it was granted.
func (r *run) grant() Grant {
	g := Grant{Run: r.id, Generation: r.generation, Try: r.try}
	for _, p := range r.places {
		g.Places = append(g.Places, p.Place)
	}
	return g
}

// placeOn returns what a grant that is not placed gives the run on a host, or nil.
func (r *run) placeOn(host string) *place {
	if r.state != granted {
		return nil
	}
	if i := slices.IndexFunc(r.places, func(p place) bool { return p.Host == host }); i >= 0 {
		return &r.places[i]
	}
	return nil
}

// protect has a run that waits guard the hosts that it could use. One that could not start
// if all of them were empty guards nothing: it does not wait for other runs.
func (m *Machine) protect(r *run) {
	if m.open == 0 || !slices.ContainsFunc(m.class(r).hosts, func(h *host) bool { return h.ready && !h.guard.on }) {
		return
	}
	hosts := m.openFor(r)
	if !slices.ContainsFunc(hosts, func(h *host) bool { return !h.guard.on }) || !m.couldStart(r, hosts) {
		return
	}
	m.moment.guards++
	turn, places := m.turn(r, hosts)
	for _, h := range hosts {
		rest := r.restOf(h, turn, places)
		if !r.enough.IsZero() {
			// It has its turn soon, and could use any of the hosts.
			turn, rest = r.begins(), r.restOf(h, time.Time{}, nil)
		}
		if !h.guard.on {
			h.guard = guard{on: true, until: turn, rest: rest, listed: r.shape.listed}
			m.open--
			continue
		}
		if turn.Before(h.guard.until) {
			h.guard.until = turn
		}
		h.guard.rest = room{min(h.guard.rest.slots, rest.slots), min(h.guard.rest.gpus, rest.gpus)}
		h.guard.listed = slices.Concat(h.guard.listed, r.shape.listed)
	}
}

// openFor returns the hosts that get tasks of a run, if there is room.
func (m *Machine) openFor(r *run) []*host {
	list := make([]*host, 0, len(m.class(r).hosts))
	for _, h := range m.class(r).hosts {
		if r.open(h) {
			list = append(list, h)
		}
	}
	return list
}

// couldStart reports whether a run could start if the hosts that are open for it were empty.
func (m *Machine) couldStart(r *run, hosts []*host) bool {
	if r.judged != m.changes {
		r.judged, r.could = m.changes, m.search(r, hosts, r.all) != nil
	}
	return r.could
}

// use is the room that a run has on a host, until a known end or, at 0, nobody knows when.
type use struct {
	room
	alone bool
	// contested reports whether GPUs of it are among those that the other wants by name.
	contested bool
	end       int64 // in nanoseconds
}

// turn returns when a run could start on hosts, by the ends that are known, and where; zero:
// nobody knows.
func (m *Machine) turn(r *run, hosts []*host) (time.Time, []place) {
	m.uses, m.ends = m.uses[:0], m.ends[:0]
	for _, h := range hosts {
		h.firstUse = len(m.uses)
		h.each(func(o *run, s room, alone bool) {
			if o == r {
				return
			}
			u := use{s, alone, h.contest(r.shape.listed, h.devicesOf(o)), 0}
			if !o.ends.IsZero() {
				u.end = o.ends.UnixNano()
				m.ends = append(m.ends, u.end)
			}
			m.uses = append(m.uses, u)
		})
		h.lastUse = len(m.uses)
	}
	slices.Sort(m.ends)
	ends := slices.Compact(m.ends)
	at := func(end int64) []place {
		return m.search(r, hosts, func(h *host) room { return r.after(end, h, m.uses[h.firstUse:h.lastUse]) })
	}
	i, _ := slices.BinarySearchFunc(ends, true, func(end int64, _ bool) int {
		if at(end) == nil {
			return -1
		}
		return 1
	})
	if i == len(ends) {
		return time.Time{}, nil
	}
	return time.Unix(0, ends[i]).UTC(), at(ends[i])
}

// after returns the room of a host once all uses are over that have ended by then; for a run
// that wants the host for itself there is none before all are.
func (r *run) after(end int64, h *host, uses []use) room {
	free := r.all(h)
	for i := range uses {
		u := &uses[i]
		switch {
		case u.end != 0 && u.end <= end:
			continue
		case u.alone || r.demand.Exclusive:
			return room{}
		case u.contested:
			free.gpus = 0
		}
		free.slots -= u.slots
		free.gpus -= u.gpus
	}
	return room{max(0, free.slots), max(0, free.gpus)}
}

// restOf returns the room on a host that a run has no use for at its turn, or, where that is
// not known, at any time.
func (r *run) restOf(h *host, turn time.Time, places []place) room {
	if turn.IsZero() {
		if r.demand.Exclusive {
			return room{}
		}
		s := seat{host: h, from: r.all(h), lax: r.class.lax}
		s.clear()
		s.fill(&r.shape, sizes(&r.shape))
		used := s.tasks
		if r.shape.perHost > 0 {
			used = min(used, r.shape.perHost)
		}
		own, _ := h.share(r)
		return room{h.slots + own.slots - used, h.gpus + own.gpus - (s.from.gpus - s.gpus)}
	}
	free, _ := h.roomAt(r, turn)
	if i := slices.IndexFunc(places, func(p place) bool { return p.Host == h.Name }); i >= 0 {
		if r.demand.Exclusive {
			return room{}
		}
		return room{free.slots - places[i].tasks, free.gpus - places[i].gpus}
	}
	return free
}
