package fleet

import (
	"cmp"
	"slices"
	"strconv"
)

// devices returns the names of all the host's GPUs.
func (h *Host) devices() []string {
	names := make([]string, len(h.GPUs))
	for i := range names {
		names[i] = cmp.Or(h.GPUs[i].Name, strconv.Itoa(i))
	}
	return names
}

// knows reports whether every listed name is the name of one of the host's GPUs. A GPU may have
// several names, so a run that uses a different name than the host gets all the host's GPUs.
func (h *Host) knows(listed []string) bool {
	names := h.devices()
	return !slices.ContainsFunc(listed, func(name string) bool { return !slices.Contains(names, name) })
}

// devicesOf returns the host's GPUs that a run holds or was granted.
func (h *host) devicesOf(r *run) []string {
	var list []string
	if i, there := h.holding(r); there {
		list = h.Holds[i].Devices
	}
	if p := r.placeOn(h.Name); p != nil {
		for _, name := range p.Devices {
			if !slices.Contains(list, name) {
				list = append(slices.Clip(list), name)
			}
		}
	}
	return list
}

// contest reports whether a run that holds the GPUs in has conflicts with a run that requests those
// in listed.
func (h *host) contest(listed, has []string) bool {
	if len(listed) == 0 || len(has) == 0 {
		return false
	}
	return !h.knows(listed) || slices.ContainsFunc(listed, func(name string) bool { return slices.Contains(has, name) })
}

// unlisted returns the number of GPUs that a run can use without those that other runs request by
// name.
func (h *host) unlisted(r *run, listed []string) int {
	n, own := 0, h.devicesOf(r)
	if h.contest(r.shape.listed, listed) || !h.knows(listed) {
		return len(own)
	}
	for _, name := range h.unused(r) {
		if !slices.Contains(listed, name) || slices.Contains(own, name) {
			n++
		}
	}
	return n
}

// unused returns the GPUs that other runs do not use.
func (h *host) unused(r *run) []string {
	names := h.devices()
	h.each(func(o *run, _ room, _ bool) {
		if o != r {
			has := h.devicesOf(o)
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(has, name) })
		}
	})
	return names
}

// assign chooses a run's GPUs at a place. It prefers those that the run requests by name, then
// those that the run already holds, and then others, preferably ones that earlier runs do not
// request by name.
func (h *host) assign(r *run, p *place) []string {
	if p.GPUs == 0 {
		return nil
	}
	var list []string
	take := func(names []string) {
		for _, name := range names {
			if len(list) < p.GPUs && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	unused, own, all := h.unused(r), h.devicesOf(r), h.devices()
	take(p.listed)
	p.GPUs -= len(p.listed) - len(list) // the same GPU was listed twice
	take(slices.DeleteFunc(slices.Clone(unused), func(name string) bool { return !slices.Contains(own, name) }))
	take(slices.DeleteFunc(slices.Clone(unused), func(name string) bool { return slices.Contains(h.guard.listed, name) }))
	take(unused)
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(slices.Index(all, a), slices.Index(all, b)) })
	return list
}
