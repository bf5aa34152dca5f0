package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// State is the state that a fleet passes from one workflow execution to the next.
type State struct {
	Now     time.Time `json:"now,omitzero"`
	Met     int       `json:"met,omitempty"`
	Settled time.Time `json:"settled,omitzero"`
	Hosts   []*host   `json:"hosts,omitempty"`
	Cordons []named   `json:"cordons,omitempty"`
	// Runs is sorted by Number.
	Runs []*run `json:"runs,omitempty"`
	// Packed is the whole state as gzipped JSON; all other fields are then empty. See
	// [State.Pack].
	Packed []byte `json:"packed,omitempty"`
}

// State returns the fleet's state, which is valid until the next step.
func (m *Machine) State() State {
	return State{
		Now: m.now, Met: m.met, Settled: m.settled, Hosts: m.hosts, Cordons: m.cordons,
		//workflowcheck:ignore the runs are sorted
		Runs: slices.SortedFunc(maps.Values(m.runs), func(a, b *run) int { return cmp.Compare(a.Number, b.Number) }),
	}
}

// Resume returns the fleet with state s.
func Resume(s State) *Machine {
	m := New()
	m.now, m.met, m.settled, m.hosts, m.cordons = s.Now, s.Met, s.Settled, s.Hosts, s.Cordons
	for _, r := range s.Runs {
		m.runs[r.ID] = r
		r.shape = shapeOf(r.Demand.on(r.Demand.MinHosts))
		switch r.State {
		case waiting:
			m.enqueue(r)
		case granted:
			m.granted = append(m.granted, r)
		}
	}
	for _, h := range m.hosts {
		for i := range h.Holds {
			o := &h.Holds[i]
			o.run = m.runs[o.Run]
			o.run.held = append(o.run.held, h)
		}
		for _, r := range m.granted {
			if r.placeOn(h.Name) != nil {
				h.granted = append(h.granted, r)
			}
		}
		h.count()
	}
	return m
}
