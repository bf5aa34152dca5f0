package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/plural"
	"github.com/clusterrun/clusterrun/workflows/shorten"
)

const (
	// maxNamed bounds the hosts that an explanation names, and maxWords its texts of users.
	maxNamed = 5
	maxWords = 120
)

// why says what a run waits for: "waits for 8 slots with gpu.model == H100: 4 free on gpu-1,
// gpu-2 draining".
func (m *Machine) why(r *run) string {
	text := "waits for " + wants(&r.demand, r.shape.tasks)
	if err := m.class(r).err; err != nil {
		return text + ": " + err.Error()
	}
	if m.search(r, m.class(r).hosts, func(h *host) room { return m.unguarded(r, h) }) != nil {
		return text + ": there is room, which runs that come first have use for"
	}
	return text + ": " + m.missing(r)
}

// unguarded returns the room that a run may have on a host when it is first in the queue.
func (m *Machine) unguarded(r *run, h *host) room {
	free, alone := h.free(r)
	if !r.open(h) || r.demand.Exclusive && !alone {
		return room{}
	}
	return free
}

// wants says what a demand is for.
func wants(d *Demand, tasks int) string {
	var b strings.Builder
	b.WriteString(plural.Of(tasks, "slot", "slots"))
	switch {
	case d.PerHost > 0:
		fmt.Fprintf(&b, ", %d on each host", d.PerHost)
	case d.MaxHosts == 1:
		b.WriteString(" on one host")
	case d.MinHosts > 0 && d.MinHosts == d.MaxHosts:
		fmt.Fprintf(&b, " on %d hosts", d.MinHosts)
	}
	if d.Exclusive {
		b.WriteString(" of hosts that nobody else uses")
	}
	for _, g := range d.Groups {
		if g.GPUs == AllGPUs {
			b.WriteString(" and all GPUs of each host")
			break
		} else if g.GPUs > 0 {
			fmt.Fprintf(&b, " and %s of each host", plural.Of(g.GPUs, "GPU", "GPUs"))
			break
		}
	}
	if len(d.Select) > 0 {
		b.WriteString(" on " + shorten.List(d.Select, maxNamed))
	}
	if len(d.Constraints) > 0 {
		b.WriteString(" with " + shorten.List(d.Constraints, maxNamed))
	}
	return shorten.Text(b.String(), 4*maxWords)
}

// missing says what there is of the room that a run wants, and why not more.
func (m *Machine) missing(r *run) string {
	hosts := m.class(r).hosts
	for _, g := range r.demand.Groups {
		if g.Host != "" && !slices.ContainsFunc(hosts, func(h *host) bool { return h.Name == g.Host }) {
			return m.noHost(g.Host)
		}
	}
	if len(hosts) == 0 {
		return "no host of the fleet is such a one" + m.whoIsThere()
	}
	var free, closed []string
	full := 0
	for _, h := range hosts {
		room := m.unguarded(r, h)
		at := slices.IndexFunc(r.refusals, func(f refusal) bool { return f.host == h.Name })
		switch state := h.state(); {
		case state != HostReady:
			closed = append(closed, fmt.Sprintf("%s %s", h.Name, state))
		case at >= 0:
			closed = append(closed, fmt.Sprintf("%s refused it (%s)", h.Name, shorten.Text(r.refusals[at].reason, maxWords)))
		case room.slots <= 0:
			full++
		case r.shape.hasGPUs:
			free = append(free, fmt.Sprintf("%d and %s free on %s", room.slots, plural.Of(room.gpus, "GPU", "GPUs"), h.Name))
		default:
			free = append(free, fmt.Sprintf("%d free on %s", room.slots, h.Name))
		}
	}
	parts := slices.Concat(free[:min(len(free), maxNamed)], closed[:min(len(closed), maxNamed)])
	if more := len(free) + len(closed) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if full > 0 {
		parts = append(parts, plural.Of(full, "host full", "hosts full"))
	}
	return strings.Join(parts, ", ")
}

func (m *Machine) noHost(name string) string {
	return fmt.Sprintf("there is no host %s in the fleet%s", name, m.whoIsThere())
}

// whoIsThere names the hosts, behind a sentence.
func (m *Machine) whoIsThere() string {
	if len(m.hosts) == 0 {
		return ", which has none"
	}
	var names []string
	for _, h := range m.hosts {
		names = append(names, h.Name)
	}
	return ": there are " + shorten.List(names, maxNamed)
}

// Impossible returns why no hosts of the fleet could ever meet a demand, also if they were
// empty and ready; nil if they could.
func (m *Machine) Impossible(d Demand) error {
	r := &run{}
	r.set(d)
	hosts := m.class(r).hosts
	if err := m.class(r).err; err != nil {
		return err
	}
	if m.search(r, hosts, (*host).all) != nil {
		return nil
	}
	return textError(m.tooSmall(r, hosts))
}

// tooSmall says why hosts could not meet a demand if they were empty.
func (m *Machine) tooSmall(r *run, hosts []*host) string {
	d, pinned := &r.demand, map[string]int{}
	for _, g := range d.Groups {
		if g.Host == "" {
			continue
		}
		h := m.host(g.Host)
		pinned[g.Host] += g.Tasks
		switch {
		case h == nil:
			return m.noHost(g.Host)
		case !slices.Contains(hosts, h):
			return fmt.Sprintf("host %s is not one of those that are wanted: %s", g.Host, wants(d, r.shape.tasks))
		case h.all().slots < pinned[g.Host]:
			return fmt.Sprintf("host %s has %s, %d are wanted", h.Name, plural.Of(h.Slots, "slot", "slots"), pinned[g.Host])
		}
	}
	if len(hosts) == 0 {
		return fmt.Sprintf("no host of the fleet can ever have %s%s", wants(d, r.shape.tasks), m.whoIsThere())
	}
	seats := m.choice // of the search that found nothing
	for _, s := range seats {
		s.clear()
		s.fits = s.fitting(&r.shape, sizes(&r.shape))
	}
	slices.SortFunc(seats, roomiest)
	largest := seats[0]
	most := r.shape.max
	switch {
	case r.shape.perHost > 0 && (r.shape.tasks+r.shape.perHost-1)/r.shape.perHost > len(hosts):
		return fmt.Sprintf("%s would do, %d are wanted: %s", plural.Of(len(hosts), "host", "hosts"), (r.shape.tasks+r.shape.perHost-1)/r.shape.perHost, wants(d, r.shape.tasks))
	case r.shape.min > len(hosts):
		return fmt.Sprintf("%s would do, %d are wanted", plural.Of(len(hosts), "host", "hosts"), r.shape.min)
	}
	total := 0
	for _, s := range seats[:min(most, len(seats))] {
		total += s.fits
	}
	if len(hosts) == 1 || most == 1 {
		return fmt.Sprintf("host %s has %s, %d are wanted", largest.host.Name, plural.Of(largest.fits, "slot", "slots"), r.shape.tasks)
	}
	return fmt.Sprintf("%s have %s together, %d are wanted", plural.Of(min(most, len(seats)), "host", "hosts"), plural.Of(total, "slot", "slots"), r.shape.tasks)
}
