package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// terms describe when a granted run must make way for another run.
type terms struct {
	// Priority is 0 if unknown to the fleet, which then never preempts the run.
	Priority int           `json:"priority,omitempty"`
	Notice   time.Duration `json:"notice,omitempty"`
	Firm     bool          `json:"firm,omitempty"`
}

// leaving is a run's notice to make way for another run.
type leaving struct {
	For   Run       `json:"for,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

const (
	// overdue is how long after a notice's deadline the fleet still counts on the capacity, because
	// a process may take time to exit.
	overdue = 10 * time.Minute
	// maxSpared limits the runs that are checked for whether they must leave.
	maxSpared = 64
)

// leaves reports whether a run has notice, so that its capacity will soon be free.
func (r *run) leaves(now time.Time) bool {
	return !r.Leaving.Until.IsZero() && now.Before(r.Leaving.Until.Add(overdue))
}

// preempt gives notice to as few runs of lower priority as necessary for r to start after they
// leave. It prefers the lowest priority, then the least lost work. It preempts nothing if the runs
// that already have notice free enough capacity, not counting what is promised to earlier runs, and
// nothing for a run that has notice itself. It skips hosts that an earlier run without a promise
// could use. A run that hosts have refused does not preempt, because the hosts might keep refusing
// it.
func (m *Machine) preempt(r *run) []Action {
	if m.settings.Preempt != PreemptLower || m.soft == 0 {
		return nil
	}
	hosts := m.openFor(r)
	if !m.couldStart(r, hosts) {
		return nil
	}
	var actions []Action
	if r.Try == 0 && r.Enough.IsZero() && !r.last {
		actions = m.giveNotice(r, hosts)
	}
	if r.promised != m.decision {
		for _, h := range hosts {
			if !h.firm {
				h.firm = true
				m.soft--
			}
		}
	}
	return actions
}

// giveNotice does this for r and the hosts that it could use.
func (m *Machine) giveNotice(r *run, hosts []*host) []Action {
	victims, gone := m.victims(r, hosts), m.withNotice(hosts)
	if len(victims)+len(gone) == 0 {
		return nil
	}
	defer func() {
		for _, o := range slices.Concat(gone, victims) {
			o.gone = false
		}
	}()
	for _, o := range gone {
		o.gone = true
	}
	find := func() []place {
		return m.search(r, hosts, func(h *host) room { return m.roomThen(r, h) })
	}
	fits := func() bool { return find() != nil }
	first := func(n int) bool {
		for i, o := range victims {
			o.gone = i < n
		}
		return fits()
	}
	if first(0) {
		m.promise(r, find())
		return nil
	}
	if !first(len(victims)) {
		return nil
	}
	m.inOrder(victims)
	n := 1 + sort.Search(len(victims)-1, func(i int) bool { return first(i + 1) })
	first(n)
	chosen := spare(victims[:n], fits)
	m.promise(r, find())
	var actions []Action
	for _, o := range chosen {
		notice := o.Terms.Notice
		if most := m.settings.LongestNotice; most > 0 {
			notice = min(notice, most)
		}
		o.Leaving = leaving{For: r.ID, Until: m.now.Add(notice)}
		actions = append(actions, Preempt{
			Run: o.ID, For: r.ID, Deadline: o.Leaving.Until,
			Reason: fmt.Sprintf("run %s with priority %d needs the room", shorten.Text(r.ID.WorkflowID, maxWords), r.Demand.Priority),
		})
	}
	return actions
}

// roomThen returns the capacity that a host offers a run once the runs marked gone have left.
func (m *Machine) roomThen(r *run, h *host) room {
	if h.firm {
		return m.roomFor(r, h)
	}
	free, alone := h.roomAt(r, time.Time{})
	if r.Demand.Exclusive && (!alone || h.promised != room{}) {
		return room{}
	}
	return room{max(0, free.slots-h.promised.slots), max(0, free.gpus-h.promised.gpus)}
}

// promise reserves a run's places against later runs in this decision. A run that requests GPUs by
// name does not get a promise, because another run may request the same GPUs.
func (m *Machine) promise(r *run, places []place) {
	if len(r.shape.listed) > 0 {
		return
	}
	r.promised = m.decision
	for _, p := range places {
		h := m.host(p.Host)
		h.promised.slots += p.Tasks
		h.promised.gpus += p.GPUs
		if r.Demand.Exclusive {
			h.promised = room{noBound, noBound}
		}
	}
}

// victims returns the runs on hosts that r may preempt.
func (m *Machine) victims(r *run, hosts []*host) []*run {
	var list []*run
	m.looks++
	for _, h := range hosts {
		if h.firm {
			continue
		}
		for _, o := range h.Holds {
			v := o.run
			if v.State == holding && v.Terms.Priority > r.Demand.Priority && !v.Terms.Firm && v.Leaving.Until.IsZero() && v.seen != m.looks {
				v.seen = m.looks
				list = append(list, v)
			}
		}
	}
	return list
}

// inOrder sorts runs by preemption order.
func (m *Machine) inOrder(list []*run) {
	slices.SortFunc(list, func(a, b *run) int {
		return cmp.Or(-cmp.Compare(a.Terms.Priority, b.Terms.Priority), cmp.Compare(a.work(m.now), b.work(m.now)), -cmp.Compare(a.Number, b.Number))
	})
}

// work returns the total time that a run's tasks have held their slots.
func (r *run) work(now time.Time) time.Duration {
	slots := 0
	for _, h := range r.held {
		if i, there := h.holding(r); there {
			slots += h.Holds[i].Tasks
		}
	}
	return now.Sub(r.GrantedAt) * time.Duration(slots)
}

// withNotice returns the runs on hosts that will leave soon.
func (m *Machine) withNotice(hosts []*host) []*run {
	var list []*run
	for _, h := range hosts {
		for _, o := range h.Holds {
			if o.run.leaves(m.now) {
				list = append(list, o.run)
			}
		}
	}
	return list
}

// spare removes the runs that need not leave, starting from the last.
func spare(victims []*run, fits func() bool) []*run {
	if len(victims) > maxSpared {
		return victims
	}
	for i := len(victims) - 1; i >= 0; i-- {
		victims[i].gone = false
		victims[i].gone = !fits()
	}
	return slices.DeleteFunc(slices.Clone(victims), func(o *run) bool { return !o.gone })
}

// Preemption is a run that makes way for another, with the time of its stop.
type Preemption struct {
	Run   Run       `json:"run"`
	Until time.Time `json:"until"`
}

// makers groups the runs that have notice by the run that they make way for, sorted by Number.
func (m *Machine) makers() map[Run][]Preemption {
	var found []*run
	for _, h := range m.hosts {
		for _, o := range h.Holds {
			if !o.run.Leaving.Until.IsZero() {
				found = append(found, o.run)
			}
		}
	}
	slices.SortFunc(found, func(a, b *run) int { return cmp.Compare(a.Number, b.Number) })
	all := map[Run][]Preemption{} // for look-ups only
	for _, v := range slices.Compact(found) {
		all[v.Leaving.For] = append(all[v.Leaving.For], Preemption{v.ID, v.Leaving.Until})
	}
	return all
}

// whoMakesRoom describes which runs are being preempted, and until when.
func whoMakesRoom(makers []Preemption) string {
	if len(makers) == 0 {
		return ""
	}
	var names []string
	var last time.Time
	for _, w := range makers {
		names = append(names, shorten.Text(w.Run.WorkflowID, maxWords))
		if w.Until.After(last) {
			last = w.Until
		}
	}
	verb := "makes"
	if len(names) > 1 {
		verb = "make"
	}
	return fmt.Sprintf("; %s %s room until %s", shorten.List(names, maxNamed), verb, last.UTC().Format("2006-01-02 15:04:05 UTC"))
}
