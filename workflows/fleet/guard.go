package fleet

import (
	"slices"
	"time"
)

// guard reserves capacity on a host for waiting runs that are earlier in the queue.
type guard struct {
	on bool
	// until is their earliest start, or zero if unknown.
	until time.Time
	// rest is the capacity that none of these runs can use, and listed the GPUs that they request
	// by name.
	rest   room
	listed []string
}

// protect makes a pending run guard the hosts that it could use. A run that could not start even on
// empty hosts does not guard any, because it is not waiting for other runs.
func (p *planner) protect(r *run) {
	if p.open == 0 || !slices.ContainsFunc(p.class(r).hosts, func(h *host) bool { return h.ready && !h.guard.on }) {
		return
	}
	hosts := p.openFor(r)
	if !slices.ContainsFunc(hosts, func(h *host) bool { return !h.guard.on }) || !p.couldStart(r, hosts) {
		return
	}
	var turn time.Time
	var places []place
	if r.Enough.IsZero() { // otherwise a short run on the host could make r restart its wait
		turn, places = p.turn(r, hosts)
	}
	for _, h := range hosts {
		rest := r.restOf(h, turn, places)
		if !h.guard.on {
			h.guard = guard{on: true, until: turn, rest: rest, listed: r.shape.listed}
			p.open--
			continue
		}
		if turn.Before(h.guard.until) {
			h.guard.until = turn
		}
		h.guard.rest = room{min(h.guard.rest.slots, rest.slots), min(h.guard.rest.gpus, rest.gpus)}
		h.guard.listed = slices.Concat(h.guard.listed, r.shape.listed)
	}
}

// use is the capacity that a run uses on a host until end, which is 0 if unknown.
type use struct {
	room
	alone bool
	// contested reports whether the capacity includes GPUs that the guarding run requests by name.
	contested bool
	end       int64 // in nanoseconds
}

// turn returns when a run could start, given the known ends of other runs, and its places. The time
// is zero if unknown.
func (p *planner) turn(r *run, hosts []*host) (time.Time, []place) {
	p.uses, p.ends = p.uses[:0], p.ends[:0]
	for _, h := range hosts {
		h.firstUse = len(p.uses)
		h.each(func(o *run, s room, alone bool) {
			if o == r {
				return
			}
			u := use{s, alone, h.contest(r.shape.listed, h.devicesOf(o)), 0}
			if !o.Ends.IsZero() {
				u.end = o.Ends.UnixNano()
				p.ends = append(p.ends, u.end)
			}
			p.uses = append(p.uses, u)
		})
		h.lastUse = len(p.uses)
	}
	slices.Sort(p.ends)
	ends := slices.Compact(p.ends)
	at := func(end int64) []place {
		return p.search(r, hosts, func(h *host) room { return r.after(end, h, p.uses[h.firstUse:h.lastUse]) })
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

// after returns a host's capacity once all uses that end by the given time are over. For a run that
// needs the host exclusively, the capacity is zero until all uses are over.
func (r *run) after(end int64, h *host, uses []use) room {
	free := r.all(h)
	for i := range uses {
		u := &uses[i]
		switch {
		case u.end != 0 && u.end <= end:
			continue
		case u.alone || r.Demand.Exclusive:
			return room{}
		case u.contested:
			free.gpus = 0
		}
		free.slots -= u.slots
		free.gpus -= u.gpus
	}
	return room{max(0, free.slots), max(0, free.gpus)}
}

// restOf returns the host capacity that a run does not need at its turn or, if its turn is unknown,
// at any time.
func (r *run) restOf(h *host, turn time.Time, places []place) room {
	if turn.IsZero() {
		if r.Demand.Exclusive {
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
		if r.Demand.Exclusive {
			return room{}
		}
		return room{free.slots - places[i].Tasks, free.gpus - places[i].GPUs}
	}
	return free
}
