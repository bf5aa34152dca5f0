package fleet

import (
	"cmp"
	"slices"
)

// A spare is a host that a run holds without tasks: as much room as the run has on its fullest
// host. It replaces a host in the next generation.

// isSpare reports whether a run holds the host as a spare.
func (h *host) isSpare(r *run) bool {
	i, there := h.holding(r)
	return there && h.Holds[i].Spare
}

// spares returns the hosts that a run holds as spares.
func (r *run) spares() []*host {
	return slices.DeleteFunc(slices.Clone(r.held), func(h *host) bool { return !h.isSpare(r) })
}

// dropSpares gives back the spares of a run that it cannot use or, if all is set, all of them. It
// reports whether there were any.
func (r *run) dropSpares(all bool) bool {
	dropped := false
	for _, h := range r.spares() {
		if all || h.state() != HostReady {
			h.drop(r)
			dropped = true
		}
	}
	return dropped
}

// substitute puts the run's spares in the places of hosts that it has lost, or that get no tasks,
// among the hosts that it prefers. So the others keep their ranks.
func (m *Machine) substitute(r *run) {
	spares := r.spares()
	if len(spares) == 0 {
		return
	}
	prefer := slices.Clone(r.Demand.Prefer)
	spares = slices.DeleteFunc(spares, func(h *host) bool { return h.state() != HostReady || slices.Contains(prefer, h.Name) })
	for i, name := range prefer {
		if h := m.host(name); len(spares) > 0 && (h == nil || h.state() != HostReady) {
			prefer[i], spares = spares[0].Name, spares[1:]
		}
	}
	r.Demand.Prefer, r.shape.prefer = prefer, prefer
}

// keepSpares takes spares for the runs that have fewer than they want, in the order of the runs.
// A spare takes room that no pending run could use.
func (m *Machine) keepSpares() {
	for _, r := range m.sparing {
		if r.State != holding {
			continue
		}
		for n := len(r.spares()); n < r.Demand.Spares; n++ {
			if !m.takeSpare(r) {
				break
			}
		}
	}
}

// takeSpare takes a spare for a run, and reports whether there was one.
func (m *Machine) takeSpare(r *run) bool {
	var need room
	for _, h := range r.held {
		if i, _ := h.holding(r); !h.Holds[i].Spare {
			need = room{max(need.slots, h.Holds[i].Tasks), max(need.gpus, len(h.Holds[i].Devices))}
		}
	}
	if m.class(r); need.slots == 0 || r.over {
		return false
	}
	var best *host
	for _, h := range m.class(r).hosts {
		if _, there := h.holding(r); there || !h.ready || h.guard.on {
			continue
		}
		free, alone := h.free(r)
		if free.slots < need.slots || free.gpus < need.gpus || r.Demand.Exclusive && !alone {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(h.gpus, best.gpus), cmp.Compare(h.slots, best.slots)) < 0 {
			best = h
		}
	}
	if best == nil {
		return false
	}
	best.hold(r, Holding{
		Run: r.ID, Generation: r.Generation, Tasks: need.slots, Exclusive: r.Demand.Exclusive, Spare: true,
		Devices: best.assign(r, &place{GPUs: need.gpus}),
	})
	return true
}
