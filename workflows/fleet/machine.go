package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Machine decides which run gets capacity, and when. It keeps the grants and the queue of pending
// runs. Its planner finds places on its roster's hosts. A Machine is not safe for concurrent use.
type Machine struct {
	planner
	// runs is only for look-ups, because map order is random.
	runs map[Run]*run
	met  int
	// waiting holds the pending runs in order. granted holds the runs with grants that are not
	// placed yet.
	waiting, granted []*run
	// settled is when the fleet stops expecting more hosts.
	settled time.Time
}

// run is a waiting or granted run.
type run struct {
	ID Run `json:"run"`
	// Number is the run's position in the order of arrival.
	Number     int       `json:"number"`
	Generation int       `json:"generation,omitempty"`
	Try        int       `json:"try,omitempty"`
	State      runState  `json:"state,omitempty"`
	Demand     Demand    `json:"demand,omitzero"`
	Since      time.Time `json:"since,omitzero"`
	Refusals   []refusal `json:"refusals,omitempty"`
	Places     []place   `json:"places,omitempty"`
	// GrantedAt is the time of the grant, and Ends the end of the run, if known.
	GrantedAt time.Time `json:"granted_at,omitzero"`
	Ends      time.Time `json:"ends,omitzero"`
	// New reports whether the fleet has yet to check if its hosts could ever meet the demand.
	New bool `json:"new,omitempty"`
	// Told reports whether the run was asked to return its capacity.
	Told bool `json:"told,omitempty"`
	// Enough is the time since when enough hosts have been free for an elastic run that waits for
	// more. It is zero while too few are free.
	Enough time.Time `json:"enough,omitzero"`

	// shape is derived from the demand.
	shape shape
	class *class
	over  bool // the run needs more slots than its class has, which is allowed
	// held lists the hosts where the run holds something, by name.
	held []*host
	// last reports whether the run is refused unless it is granted immediately.
	last bool
}

type runState int

const (
	holding runState = iota // the run is not waiting
	waiting
	granted
)

// refusal is a host's refusal of a run's tasks.
type refusal struct {
	Host   string    `json:"host"`
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until"`
}

const (
	// maxRefusals limits the number of hosts that a run avoids. A run avoids a host for
	// firstRefusal after its first refusal, and twice as long after each further one, up to
	// lastRefusal, unless the host rejoins earlier. The reason for a refusal, such as a full disk,
	// may last a second or a day.
	maxRefusals               = 32
	firstRefusal, lastRefusal = 5 * time.Second, 5 * time.Minute
	// settling is how long the fleet expects more hosts after the last one joined.
	settling = 30 * time.Second
	// maxWaiting limits the queue.
	maxWaiting = 5000
)

const queueFull = "the queue is full: too many runs are pending; try again later"

// New returns a fleet without hosts.
func New() *Machine {
	return &Machine{runs: map[Run]*run{}, planner: planner{classes: map[string]*class{}}}
}

// Step applies an event and returns the actions to carry out, in order.
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
	case Asked:
		m.goOn(e.Now)
		actions = m.asked(e)
	case Placed:
		m.goOn(e.Now)
		actions = m.placed(e)
	case Refused:
		m.goOn(e.Now)
		m.refused(e)
	case Freed:
		m.goOn(e.Now)
		m.freed(e)
	case Passed:
		m.goOn(e.Now)
	}
	return append(actions, m.decide()...)
}

// goOn advances the time, but never sets it back, because events may be late.
func (m *Machine) goOn(now time.Time) {
	if now.After(m.now) {
		m.now = now
	}
	for _, r := range m.waiting {
		r.dropRefusals(func(f refusal) bool { return !m.now.Before(f.Until) })
	}
}

// dropRefusals drops the refusals that are over, so that their hosts may be tried again.
func (r *run) dropRefusals(over func(refusal) bool) {
	r.Refusals = slices.DeleteFunc(r.Refusals, over)
}

// Wake returns when the machine needs [Passed], or zero if it needs another event first.
func (m *Machine) Wake() (at time.Time) {
	sooner := func(t time.Time) {
		if t.After(m.now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, r := range m.waiting {
		if r.New {
			sooner(m.settled)
		}
		for _, f := range r.Refusals {
			sooner(f.Until)
		}
		if !r.Enough.IsZero() {
			sooner(r.begins())
		}
	}
	return at
}

func (m *Machine) asked(e Asked) []Action {
	r := m.runs[e.Run]
	switch {
	case r == nil:
		r = m.meet(e.Run, -1)
	case e.Generation < r.Generation, e.Generation == r.Generation && r.State == holding:
		return nil // the message is late
	case e.Generation == r.Generation && r.State == granted && e.Try <= r.Try:
		return []Action{r.grant()}
	}
	m.unqueue(r)
	m.takeBack(r)
	if e.Generation > r.Generation {
		r.Try, r.Refusals, r.Told, r.Enough = 0, nil, false, time.Time{}
	}
	r.Generation, r.Try = e.Generation, max(r.Try, e.Try)
	if e.Last {
		e.Demand.JoinWait = 0
	}
	r.set(e.Demand)
	r.Since, r.Ends = e.Since, time.Time{}
	r.New = e.Generation == 0
	if r.Since.IsZero() || r.Since.After(e.Now) {
		r.Since = e.Now
	}
	if len(m.waiting) >= maxWaiting {
		m.forget(r)
		return []Action{Grant{Run: e.Run, Generation: e.Generation, Try: r.Try, Refusal: queueFull}}
	}
	m.enqueue(r)
	if !e.Last {
		return nil
	}
	r.last = true
	actions := m.decide()
	r.last = false
	if r.State == waiting {
		why := "waited for " + m.why(r)
		m.unqueue(r)
		m.forget(r)
		actions = append(actions, Grant{Run: e.Run, Generation: e.Generation, Try: r.Try, Refusal: why})
	}
	return actions
}

// meet starts to track a run.
func (m *Machine) meet(id Run, generation int) *run {
	m.met++
	r := &run{ID: id, Generation: generation, Number: m.met}
	m.runs[id] = r
	return r
}

// set sets the run's demand.
func (r *run) set(d Demand) {
	r.Demand, r.shape, r.class = d, shapeOf(d.on(d.MinHosts)), nil
	r.Demand.Priority = min(max(cmp.Or(d.Priority, spec.DefaultPriority), 1), spec.LastPriority)
}

func (m *Machine) placed(e Placed) []Action {
	r := m.runs[e.Run]
	if r == nil || r.State != granted || r.Generation != e.Generation {
		return nil
	}
	places := r.Places
	m.takeBack(r)
	for _, h := range slices.Clone(r.held) {
		if placed := slices.ContainsFunc(places, func(p place) bool { return p.Host == h.Name }); placed || h.stuckOf(r) == "" {
			h.drop(r)
		}
	}
	var actions []Action
	for _, p := range places {
		h := m.host(p.Host)
		if h == nil {
			continue // the run has left the queue since
		}
		h.hold(r, Holding{Run: r.ID, Generation: r.Generation, Tasks: p.Tasks, Devices: p.Devices, Exclusive: r.Demand.Exclusive})
		if h.Cordon.Drain {
			actions = append(actions, h.move(r.ID))
		}
	}
	r.Refusals = nil
	r.Demand, r.shape, r.class = Demand{}, shape{}, nil
	m.forget(r)
	return actions
}

func (m *Machine) refused(e Refused) {
	r := m.runs[e.Run]
	if r == nil || r.State != granted || r.Generation != e.Generation || e.Try < r.Try && e.Try > 0 {
		return
	}
	back := m.isBack(e.Host, r.GrantedAt)
	m.takeBack(r)
	r.Try++
	r.Ends = time.Time{}
	if e.Host != "" && !back {
		r.Refusals = slices.DeleteFunc(r.Refusals, func(f refusal) bool { return f.Host == e.Host })
		r.Refusals = append(r.Refusals, refusal{e.Host, e.Reason, m.now.Add(refusalLasts(r.Try))})
		r.Refusals = r.Refusals[max(0, len(r.Refusals)-maxRefusals):]
	}
	m.enqueue(r)
}

// refusalLasts returns how long a run avoids a host after the host's try-th refusal.
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
			if h.stuckOf(r) == "" { // otherwise its host reports when the processes are gone
				h.drop(r)
			}
		}
	}
	m.forget(r)
}

// enqueue inserts a run into the queue, by priority and age.
func (m *Machine) enqueue(r *run) {
	r.State = waiting
	at, _ := slices.BinarySearchFunc(m.waiting, r, before)
	m.waiting = slices.Insert(m.waiting, at, r)
}

// before compares two waiting runs by queue order.
func before(a, b *run) int {
	return cmp.Or(cmp.Compare(a.Demand.Priority, b.Demand.Priority), a.Since.Compare(b.Since), cmp.Compare(a.Number, b.Number))
}

func compareRuns(a, b Run) int {
	return cmp.Or(cmp.Compare(a.WorkflowID, b.WorkflowID), cmp.Compare(a.RunID, b.RunID))
}

// unqueue removes a run from the queue.
func (m *Machine) unqueue(r *run) {
	if r.State == waiting {
		r.State = holding
		m.waiting = slices.DeleteFunc(m.waiting, func(w *run) bool { return w == r })
	}
}

// forget drops a run if it neither waits nor holds anything.
func (m *Machine) forget(r *run) {
	if r.State == holding && len(r.held) == 0 {
		delete(m.runs, r.ID)
	}
}
