package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

type host struct {
	Host
	Silent bool      `json:"silent,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Cordon cordon    `json:"cordon,omitzero"`
	// Holds follows the order of the runs.
	Holds []held `json:"holds,omitempty"`
	// granted lists the runs with grants that are not placed yet.
	granted []*run
	// room is the host's free capacity for a run that does not use it yet. users counts the runs
	// that do.
	room
	users     int
	exclusive bool // reserved for a single run
	// guard is the capacity that earlier runs leave to later ones; see [Machine.decide].
	guard guard
	ready bool // valid during a decision
	// firstUse and lastUse delimit the host's part of the fleet's uses; see [planner.turn].
	firstUse, lastUse int
}

// held is the capacity that a run holds on a host.
type held struct {
	Holding
	run *run
}

type room struct{ slots, gpus int }

// noBound is the slot count of a host that does not limit its tasks.
const noBound = 1 << 30

// cordon prevents a host from getting new tasks.
type cordon struct {
	On       bool      `json:"on,omitempty"`
	Drain    bool      `json:"drain,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	Since    time.Time `json:"since,omitzero"`
}

// named is a departed host's cordon.
type named struct {
	Name string `json:"name"`
	cordon
}

const (
	maxHosts   = spec.MaxHosts
	maxCordons = 500
)

// state returns the host's state in the fleet.
func (h *host) state() HostState {
	switch {
	case h.Silent:
		return HostSilent
	case h.Cordon.Drain:
		return HostDraining
	case h.Cordon.On, len(h.Failing) > 0:
		return HostCordoned
	}
	return HostReady
}

// all returns the host's capacity when it is empty.
func (h *host) all() room {
	return room{cmp.Or(h.Slots, noBound), len(h.GPUs)}
}

// all returns the capacity that h has for the run when it is empty.
func (r *run) all(h *host) room {
	all := h.all()
	if r.over {
		all.slots = r.class.share(h, r.shape.tasks)
	}
	return all
}

func (m *Machine) joined(e Joined) []Action {
	if m.CheckJoin(e) != nil {
		return nil
	}
	i, known := m.hostIndex(e.Host.Name)
	if !known {
		if gone := m.longestSilent(); len(m.hosts) >= maxHosts && gone != nil {
			m.remove(gone)
			i, _ = m.hostIndex(e.Host.Name)
		}
		m.hosts = slices.Insert(m.hosts, i, &host{Since: e.Now, Cordon: m.cordonOf(e.Host.Name)})
		for _, r := range m.granted {
			if r.placeOn(e.Host.Name) != nil {
				m.hosts[i].granted = append(m.hosts[i].granted, r)
			}
		}
		m.settled = e.Now.Add(settling)
	}
	h := m.hosts[i]
	if h.Silent || h.Instance != e.Host.Instance {
		h.Since = e.Now
	}
	h.Host, h.Silent = e.Host, false
	m.forgetClasses()
	before := slices.Clone(h.Holds)
	for _, o := range before {
		if !slices.ContainsFunc(e.Holds, func(n Holding) bool { return n.Run == o.Run }) {
			h.drop(o.run)
			m.forget(o.run)
		}
	}
	var actions []Action
	for _, n := range e.Holds {
		r := m.runs[n.Run]
		if r == nil {
			r = m.meet(n.Run, n.Generation)
		}
		h.hold(r, n)
		if h.Cordon.Drain && !slices.ContainsFunc(before, func(o held) bool { return o.Run == n.Run }) {
			actions = append(actions, h.move(r.ID))
		}
	}
	for _, r := range m.waiting {
		r.dropRefusals(func(f refusal) bool { return f.Host == h.Name })
	}
	h.count()
	return actions
}

func (m *Machine) silent(e Silent) {
	if h := m.host(e.Name); h != nil && h.Instance == e.Instance && !h.Silent {
		h.Silent, h.Since = true, e.Now
	}
}

func (m *Machine) left(e Left) {
	if h := m.host(e.Name); h != nil && h.Instance == e.Instance {
		m.remove(h)
	}
}

// remove removes a host from the fleet. Its cordon remains.
func (m *Machine) remove(h *host) {
	for _, o := range slices.Clone(h.Holds) {
		h.drop(o.run)
		m.forget(o.run)
	}
	if h.Cordon.On {
		m.cordons = append(m.cordons, named{h.Name, h.Cordon})
		m.cordons = m.cordons[max(0, len(m.cordons)-maxCordons):]
	}
	m.hosts = slices.DeleteFunc(m.hosts, func(o *host) bool { return o == h })
	m.forgetClasses()
}

func (m *Machine) cordoned(e Cordoned) []Action {
	c := cordon{On: true, Drain: e.Drain, Reason: spec.EscapeControl(e.Reason), Deadline: e.Deadline, Since: e.Now}
	h := m.host(e.Name)
	if h == nil {
		if i := slices.IndexFunc(m.cordons, func(n named) bool { return n.Name == e.Name }); i >= 0 {
			m.cordons[i].cordon = c
		}
		return nil
	}
	h.Cordon = c
	var actions []Action
	if c.Drain {
		for _, o := range h.Holds {
			actions = append(actions, h.move(o.Run))
		}
	}
	return actions
}

func (m *Machine) uncordoned(e Uncordoned) {
	m.cordonOf(e.Name)
	if h := m.host(e.Name); h != nil {
		h.Cordon = cordon{}
	}
}

func (h *host) move(run Run) Move {
	return Move{Run: run, Host: h.Name, Reason: h.Cordon.Reason, Deadline: h.Cordon.Deadline}
}

// hold records the capacity that a run holds on the host, replacing the run's earlier entry.
func (h *host) hold(r *run, n Holding) {
	i, there := h.holding(r)
	if there {
		h.Holds[i].Holding = n
	} else {
		h.Holds = slices.Insert(h.Holds, i, held{n, r})
		at, _ := slices.BinarySearchFunc(r.held, h.Name, func(o *host, name string) int { return cmp.Compare(o.Name, name) })
		r.held = slices.Insert(r.held, at, h)
	}
	h.count()
}

// holding returns the run's index in holds, and whether it exists.
func (h *host) holding(r *run) (int, bool) {
	return slices.BinarySearchFunc(h.Holds, r.ID, func(o held, run Run) int { return compareRuns(o.Run, run) })
}

// stuckOf names the run's processes that survive SIGKILL, or returns an empty string.
func (h *host) stuckOf(r *run) string {
	if i, there := h.holding(r); there {
		return h.Holds[i].Stuck
	}
	return ""
}

// drop removes a run's entry from the host.
func (h *host) drop(r *run) {
	h.Holds = slices.DeleteFunc(h.Holds, func(o held) bool { return o.run == r })
	r.held = slices.DeleteFunc(r.held, func(o *host) bool { return o == h })
	h.count()
}

// share returns the host's capacity that counts as used by a run. It is the larger of what the run
// holds and what it was granted, because it will hold what it was granted.
func (h *host) share(r *run) (s room, alone bool) {
	if len(r.held) == 0 && r.State != granted {
		return room{}, false
	}
	if i, there := h.holding(r); there {
		s, alone = room{h.Holds[i].Tasks, len(h.Holds[i].Devices)}, h.Holds[i].Exclusive
	}
	if p := r.placeOn(h.Name); p != nil {
		s = room{max(s.slots, p.Tasks), max(s.gpus, p.GPUs)}
		alone = alone || r.Demand.Exclusive
	}
	return s, alone
}

// each calls f for all runs that use the host, with their shares.
func (h *host) each(f func(r *run, s room, alone bool)) {
	for _, r := range h.granted {
		s, alone := h.share(r)
		f(r, s, alone)
	}
	for i := range h.Holds {
		if o := &h.Holds[i]; !slices.Contains(h.granted, o.run) {
			f(o.run, room{o.Tasks, len(o.Devices)}, o.Exclusive)
		}
	}
}

// count computes the host's remaining capacity. It is negative if the host has reported that runs
// hold more than it provides.
func (h *host) count() {
	h.room, h.users, h.exclusive = h.all(), 0, false
	h.each(func(_ *run, s room, alone bool) {
		h.users++
		h.slots, h.gpus = h.slots-s.slots, h.gpus-s.gpus
		h.exclusive = h.exclusive || alone
	})
}

// free returns the free capacity for a run, including what the run already uses on the host, and
// whether the run is the host's only one.
func (h *host) free(r *run) (free room, alone bool) {
	if !h.exclusive && !r.over && len(r.held) == 0 && len(r.shape.listed) == 0 {
		return room{max(0, h.slots), max(0, h.gpus)}, h.users == 0
	}
	return h.roomAt(r, time.Time{})
}

// roomAt is like free, but as of time t, ignoring runs that are known to finish by t.
func (h *host) roomAt(r *run, t time.Time) (free room, alone bool) {
	free, alone = r.all(h), true
	contested := false
	h.each(func(o *run, s room, exclusive bool) {
		switch {
		case o == r || !o.Ends.IsZero() && !o.Ends.After(t):
			return
		case exclusive:
			free = room{}
		}
		alone = false
		contested = contested || h.contest(r.shape.listed, h.devicesOf(o))
		free.slots, free.gpus = max(0, free.slots-s.slots), max(0, free.gpus-s.gpus)
	})
	if contested {
		free.gpus = 0
	}
	return free, alone
}
