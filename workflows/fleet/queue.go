package fleet

import (
	"slices"
	"time"
)

// decide grants capacity, in queue order, to the runs that fit. A run that must wait guards the
// hosts that it could use against later runs, unless an earlier run already guards them.
func (m *Machine) decide() []Action {
	var actions []Action
	m.unguard()
	for _, r := range slices.Clone(m.waiting) {
		if r.New && !m.now.Before(m.settled) && len(m.hosts) > 0 {
			r.New = false
			if err := m.neverFits(r); err != nil {
				m.unqueue(r)
				m.forget(r)
				actions = append(actions, Grant{Run: r.ID, Generation: r.Generation, Try: r.Try, Refusal: err.Error()})
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
		if len(r.held) > 0 && !r.Told {
			r.Told = true
			actions = append(actions, Return{Run: r.ID, Generation: r.Generation})
		}
	}
	return actions
}

// neverFits returns why the hosts could never meet a run's demand, so that the run must be refused,
// or nil.
func (m *Machine) neverFits(r *run) error {
	if r.Demand.WaitForHosts || m.couldStart(r, m.openFor(r)) {
		return nil // the remaining checks are slow for thousands of runs
	}
	return m.Impossible(r.Demand)
}

// preference returns the host's index among the run's preferred hosts.
func (r *run) preference(h *host) int {
	if i := slices.Index(r.Demand.Prefer, h.Name); i >= 0 {
		return i
	}
	return noBound
}

// open reports whether the host may get tasks from the run.
func (r *run) open(h *host) bool {
	return h.state() == HostReady &&
		(len(r.Refusals) == 0 || !slices.ContainsFunc(r.Refusals, func(f refusal) bool { return f.Host == h.Name }))
}

// endsBy reports whether a run that starts now finishes by the given time.
func (r *run) endsBy(now, then time.Time) bool {
	return r.Demand.MaxRunTime > 0 && !then.IsZero() && !now.Add(r.Demand.MaxRunTime).After(then)
}

// grant gives a run its places.
func (m *Machine) grant(r *run, places []place) {
	m.unqueue(r)
	r.State, r.Places, r.class = granted, places, nil
	r.GrantedAt = m.now
	m.granted = append(m.granted, r)
	if r.Demand.MaxRunTime > 0 {
		r.Ends = m.now.Add(r.Demand.MaxRunTime)
	}
	for i := range places {
		p := &places[i]
		h := m.host(p.Host)
		if p.Devices == nil {
			p.Devices = h.assign(r, p)
			p.GPUs = len(p.Devices)
		}
		if h.guard.on && !r.endsBy(m.now, h.guard.until) {
			h.guard.rest.slots -= p.Tasks
			h.guard.rest.gpus -= p.GPUs
		}
		h.granted = append(h.granted, r)
		h.count()
	}
}

// takeBack withdraws a run's grant that is not yet placed.
func (m *Machine) takeBack(r *run) {
	if r.State != granted {
		return
	}
	r.State = holding
	m.granted = slices.DeleteFunc(m.granted, func(g *run) bool { return g == r })
	places := r.Places
	r.Places = nil
	for _, p := range places {
		if h := m.host(p.Host); h != nil {
			h.granted = slices.DeleteFunc(h.granted, func(g *run) bool { return g == r })
			h.count()
		}
	}
}

// grant returns the action that sends a run its grant.
func (r *run) grant() Grant {
	g := Grant{Run: r.ID, Generation: r.Generation, Try: r.Try}
	for _, p := range r.Places {
		g.Places = append(g.Places, p.Place)
	}
	return g
}

// placeOn returns a host's place in the run's grant, or nil if there is none or the grant is
// already placed.
func (r *run) placeOn(host string) *place {
	if r.State != granted {
		return nil
	}
	if i := slices.IndexFunc(r.Places, func(p place) bool { return p.Host == host }); i >= 0 {
		return &r.Places[i]
	}
	return nil
}
