package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Machine decides which run gets room, and when: it keeps the queue of pending runs, and the
// grants. Its planner finds places, on the hosts of its roster. A Machine is not safe for
// concurrent use.
type Machine struct {
	planner
	past past
	// runs is only for look-ups: ranging over a map has no order.
	runs map[Run]*run
	met  int
	// waiting has the pending runs in their order. granted has the runs with a grant that
	// are not placed yet.
	waiting, granted []*run
	// sparing are the runs that want spares, in the order in which they first asked.
	sparing []*run
	// settled is the time from which no more hosts are expected.
	settled  time.Time
	settings Settings
	// looks counts the looks for runs that may be preempted.
	looks int
}

// run is a run that waits, or that was given room.
type run struct {
	id         Run
	number     int // in the order in which the fleet met them
	generation int
	try        int
	state      runState
	demand     Demand
	shape      shape
	class      *class
	over       bool // it needs more slots than its class has, and may have them
	since      time.Time
	refusals   []refusal
	places     []place
	grantedAt  time.Time // when it was given them
	ends       time.Time // zero if not known
	// held are the hosts on which the run holds something, by name.
	held []*host
	// asked is set until the hosts were first looked at: could they ever meet the demand?
	asked bool
	// last reports whether the run is refused if it is not granted its room at once.
	last bool
	// told is set once the run was asked to give back its room.
	told bool
	// terms are from its latest demand. leaving is the notice that it has, and gone is set
	// while the fleet looks at the room that its end would leave.
	terms   terms
	leaving leaving
	gone    bool
	seen    int // the latest look that found it
	// promised is the latest decision in which it was promised room that others make.
	promised int
	// enough is the time since which there has been room on enough hosts for an elastic run
	// that waits for more. It is zero while there is no such room.
	enough time.Time
}

type runState int

const (
	holding runState = iota // it waits for nothing
	waiting
	granted
)

// refusal is a host that has not taken the tasks of a run.
type refusal struct {
	host, reason string
	until        time.Time
}

const (
	// maxRefusals bounds the hosts that are left out for a run. A host is left out for
	// firstRefusal, and twice as long with each refusal that the run meets, up to lastRefusal,
	// unless it joins again before: a disk may be full for a second, or for a day.
	maxRefusals               = 32
	firstRefusal, lastRefusal = 5 * time.Second, 5 * time.Minute
	// settling is the time after the last join for which more hosts are expected.
	settling = 30 * time.Second
	// maxWaiting bounds the queue.
	maxWaiting = 5000
)

const queueFull = "the queue is full: too many runs are pending; try again later"

// New returns a fleet without hosts.
func New() *Machine {
	return &Machine{runs: map[Run]*run{}, planner: planner{classes: map[string]*class{}}}
}

// Step takes in an event and returns the actions that follow, to be carried out in this order.
func (m *Machine) Step(e Event) []Action {
	var actions []Action
	switch e := e.(type) {
	case Joined:
		m.goOn(e.Now)
		actions = m.joined(e)
	case Silent:
		m.goOn(e.Now)
		m.silent(e)
	case Left:
		m.goOn(e.Now)
		m.left(e)
	case Cordoned:
		m.goOn(e.Now)
		actions = m.cordoned(e)
	case Uncordoned:
		m.goOn(e.Now)
		m.uncordoned(e)
	case Set:
		m.goOn(e.Now)
		m.settings = e.Settings
		m.judgeHosts()
	case Asked:
		m.goOn(e.Now)
		actions = m.ended(e.Run, e.Ended, nil)
		actions = append(actions, m.asked(e)...)
	case Placed:
		m.goOn(e.Now)
		actions = m.placed(e)
	case Refused:
		m.goOn(e.Now)
		m.refused(e)
	case Freed:
		m.goOn(e.Now)
		actions = m.ended(e.Run, e.Ended, m.runs[e.Run])
		m.freed(e)
	case Passed:
		m.goOn(e.Now)
	}
	return append(actions, m.decide()...)
}

// goOn advances the time. It never goes back: events may come late.
func (m *Machine) goOn(now time.Time) {
	if now.After(m.now) {
		m.now = now
	}
	for _, r := range m.waiting {
		r.dropRefusals(func(f refusal) bool { return !m.now.Before(f.until) })
	}
	if m.past.expired(m.now) {
		m.judgeHosts()
	}
}

// dropRefusals forgets refusals of hosts, which may then be asked again.
func (r *run) dropRefusals(over func(refusal) bool) {
	r.refusals = slices.DeleteFunc(r.refusals, over)
}

// Wake returns the time at which the machine needs [Passed], or zero if it needs another event
// first.
func (m *Machine) Wake() (at time.Time) {
	sooner := func(t time.Time) {
		if t.After(m.now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, r := range m.waiting {
		if r.asked {
			sooner(m.settled)
		}
		for _, f := range r.refusals {
			sooner(f.until)
		}
		if !r.enough.IsZero() {
			sooner(r.begins())
		}
	}
	if len(m.waiting) > 0 && m.settings.SickHosts == CordonSickHosts && len(m.past.suspected) > 0 {
		sooner(m.past.recent[0].At.Add(suspectWithin))
	}
	return at
}

func (m *Machine) asked(e Asked) []Action {
	r := m.runs[e.Run]
	switch {
	case r == nil:
		r = m.meet(e.Run, -1)
	case e.Generation < r.generation, e.Generation == r.generation && r.state == holding:
		return nil // the message is late
	case e.Generation == r.generation && r.state == granted && e.Try <= r.try:
		return []Action{r.grant()}
	}
	m.unqueue(r)
	m.takeBack(r)
	if e.Generation > r.generation {
		r.try, r.refusals, r.told, r.enough, r.leaving = 0, nil, false, time.Time{}, leaving{}
	}
	r.generation, r.try = e.Generation, max(r.try, e.Try)
	if e.Last {
		e.Demand.JoinWait = 0
	}
	r.set(e.Demand)
	m.substitute(r)
	r.since, r.ends = e.Since, time.Time{}
	r.asked = e.Generation == 0
	if r.since.IsZero() || r.since.After(e.Now) {
		r.since = e.Now
	}
	if len(m.waiting) >= maxWaiting {
		m.forget(r)
		return []Action{Grant{Run: e.Run, Generation: e.Generation, Try: r.try, Refusal: queueFull}}
	}
	m.enqueue(r)
	if !e.Last {
		return nil
	}
	r.last = true
	actions := m.decide()
	r.last = false
	if r.state == waiting {
		why := "waited for " + m.why(r)
		m.unqueue(r)
		r.leaving = leaving{until: m.now} // it ends, without a notice
		m.forget(r)
		actions = append(actions, Grant{Run: e.Run, Generation: e.Generation, Try: r.try, Refusal: why})
	}
	return actions
}

// meet begins to know a run.
func (m *Machine) meet(id Run, generation int) *run {
	m.met++
	r := &run{id: id, generation: generation, number: m.met}
	m.runs[id] = r
	return r
}

// set gives a run a demand.
func (r *run) set(d Demand) {
	r.demand, r.shape, r.class = d, shapeOf(d.on(d.MinHosts)), nil
	r.demand.Priority = min(max(cmp.Or(d.Priority, spec.DefaultPriority), 1), spec.LastPriority)
	r.terms = terms{r.demand.Priority, d.Notice, d.Firm}
}

func (m *Machine) placed(e Placed) []Action {
	r := m.runs[e.Run]
	if r == nil || r.state != granted || r.generation != e.Generation {
		return nil
	}
	places := r.places
	m.takeBack(r)
	for _, h := range slices.Clone(r.held) {
		if placed := slices.ContainsFunc(places, func(p place) bool { return p.Host == h.Name }); placed || !h.isSpare(r) && h.stuckOf(r) == "" {
			h.drop(r)
		}
	}
	var actions []Action
	for _, p := range places {
		h := m.host(p.Host)
		if h == nil {
			continue // it left in between
		}
		h.hold(r, Holding{Run: r.id, Generation: r.generation, Tasks: p.tasks, Devices: p.Devices, Exclusive: r.demand.Exclusive})
		if h.cordon.Drain {
			actions = append(actions, h.move(r.id))
		}
	}
	r.refusals = nil
	if r.demand.Spares > 0 {
		if !slices.Contains(m.sparing, r) {
			m.sparing = append(m.sparing, r)
		}
	} else {
		r.demand, r.shape, r.class = Demand{}, shape{}, nil
	}
	m.forget(r)
	return actions
}

func (m *Machine) refused(e Refused) {
	r := m.runs[e.Run]
	if r == nil || r.state != granted || r.generation != e.Generation || e.Try < r.try && e.Try > 0 {
		return
	}
	back := m.isBack(e.Host, r.grantedAt)
	m.takeBack(r)
	r.try++
	r.ends = time.Time{}
	if e.Host != "" && !back {
		r.refusals = slices.DeleteFunc(r.refusals, func(f refusal) bool { return f.host == e.Host })
		r.refusals = append(r.refusals, refusal{e.Host, e.Reason, m.now.Add(refusalLasts(r.try))})
		r.refusals = r.refusals[max(0, len(r.refusals)-maxRefusals):]
	}
	m.enqueue(r)
}

// refusalLasts returns the time for which a host is left out for a run after that many
// refusals.
func refusalLasts(try int) time.Duration {
	return min(firstRefusal<<min(max(try-1, 0), 16), lastRefusal)
}

func (m *Machine) freed(e Freed) {
	r := m.runs[e.Run]
	if r == nil {
		return
	}
	if e.Host != "" {
		if h := m.host(e.Host); h != nil {
			h.drop(r)
		}
	} else {
		m.unqueue(r)
		m.takeBack(r)
		for _, h := range slices.Clone(r.held) {
			if h.stuckOf(r) == "" { // else its host tells when they are gone
				h.drop(r)
			}
		}
	}
	m.forget(r)
}

// enqueue puts a run at its place in the queue, by its priority and its age.
func (m *Machine) enqueue(r *run) {
	r.state = waiting
	at, _ := slices.BinarySearchFunc(m.waiting, r, before)
	m.waiting = slices.Insert(m.waiting, at, r)
}

// before compares two runs that wait by their order.
func before(a, b *run) int {
	return cmp.Or(cmp.Compare(a.demand.Priority, b.demand.Priority), a.since.Compare(b.since), cmp.Compare(a.number, b.number))
}

func compareRuns(a, b Run) int {
	return cmp.Or(cmp.Compare(a.WorkflowID, b.WorkflowID), cmp.Compare(a.RunID, b.RunID))
}

// unqueue takes a run out of the queue.
func (m *Machine) unqueue(r *run) {
	if r.state == waiting {
		r.state = holding
		m.waiting = slices.DeleteFunc(m.waiting, func(w *run) bool { return w == r })
	}
}

// forget drops a run that neither waits nor has anything.
func (m *Machine) forget(r *run) {
	if r.state == holding && !slices.ContainsFunc(r.held, func(h *host) bool { return !h.isSpare(r) }) {
		r.dropSpares(true)
		delete(m.runs, r.id)
		m.sparing = slices.DeleteFunc(m.sparing, func(o *run) bool { return o == r })
	}
}
