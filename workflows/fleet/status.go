package fleet

import (
	"fmt"
	"slices"
	"time"
)

// Front returns the first runs of the queue, limited to most.
func (m *Machine) Front(most int) []Waiting { return m.QueueAfter(0, most) }

// QueueAfter returns at most most waiting runs, in order, starting after the given position. They
// are limited because it takes some time to describe why a thousand runs are waiting.
func (m *Machine) QueueAfter(position, most int) []Waiting {
	runs := m.waiting[min(max(0, position), len(m.waiting)):]
	runs = runs[:min(most, len(runs))]
	list := make([]Waiting, 0, len(runs))
	for i, r := range runs {
		w := Waiting{
			Run: r.ID, Generation: r.Generation, Position: position + i + 1, Priority: r.Demand.Priority,
			Since: r.Since, Tasks: r.shape.tasks, Why: m.why(r),
		}
		if r.Demand.Elastic {
			w.Hosts = fmt.Sprintf("%d:%d", r.Demand.MinHosts, r.Demand.MaxHosts)
		}
		if !r.Enough.IsZero() {
			w.Begins = r.begins()
		}
		list = append(list, w)
	}
	return list
}

// Waiting returns the number of waiting runs.
func (m *Machine) Waiting() int { return len(m.waiting) }

// Unplaced returns at most most runs that may have finished without a message. These are runs that
// were granted but have not reported their placement, and the first runs in the queue.
func (m *Machine) Unplaced(most int) []Run {
	var list []Run
	for _, r := range slices.Concat(m.granted, m.waiting) {
		if len(list) == most {
			break
		}
		list = append(list, r.ID)
	}
	return list
}

// Plan returns the places that a run with demand d would get if it asked now and, if elastic, did
// not wait for more hosts. The error describes what is missing.
func (m *Machine) Plan(d Demand) ([]Place, error) {
	if err := m.Impossible(d); err != nil {
		return nil, err
	}
	r := &run{State: waiting, Since: m.now.Add(time.Nanosecond)}
	r.set(d)
	m.unguard()
	for _, w := range m.waiting {
		if before(w, r) < 0 {
			m.protect(w)
		}
	}
	r.Demand.JoinWait = 0
	places := m.offer(r)
	if places == nil {
		return nil, textError("the run would wait for " + m.why(r))
	}
	var list []Place
	for _, p := range places {
		list = append(list, p.Place)
	}
	return list, nil
}

type textError string

func (e textError) Error() string { return string(e) }
