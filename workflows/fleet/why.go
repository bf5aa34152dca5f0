package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

const (
	// maxNamed limits the hosts that an explanation names, and maxWords the length of its parts
	// that users wrote.
	maxNamed = 5
	maxWords = 120
)

// why returns what a run is waiting for, and why it is not available, such as "8 slots on gpu-*: 4
// free on gpu-1, gpu-2 draining".
func (m *Machine) why(r *run) string {
	if !r.Enough.IsZero() {
		return m.whyJoining(r)
	}
	text := wants(&r.Demand, r.shape.tasks)
	if m.class(r); r.over {
		text += ", more than the hosts have, so it requires unused hosts"
	}
	if m.search(r, m.class(r).hosts, func(h *host) room { return r.unguarded(h) }) != nil {
		return text + ": there is enough capacity, but " + m.inFront(r)
	}
	return text + ": " + m.missing(r)
}

// inFront names the run that a run must wait for although it would fit.
func (m *Machine) inFront(r *run) string {
	for _, w := range m.waiting {
		if before(w, r) >= 0 {
			break
		}
		open := m.openFor(w)
		if slices.ContainsFunc(m.openFor(r), func(h *host) bool { return slices.Contains(open, h) }) && m.couldStart(w, open) {
			return fmt.Sprintf("run %s comes first and needs it", shorten.Text(w.ID.WorkflowID, maxWords))
		}
	}
	return "runs that come first need it"
}

// unguarded returns a host's capacity for a run at the front of the queue.
func (r *run) unguarded(h *host) room {
	free, alone := h.free(r)
	if !r.open(h) || r.Demand.Exclusive && !alone {
		return room{}
	}
	return free
}

// wants describes a demand.
func wants(d *Demand, tasks int) string {
	var b strings.Builder
	if d.Elastic {
		fmt.Fprintf(&b, "%s on each of %d to %d hosts", units.Count(d.PerHost, "slot", "slots"), d.MinHosts, d.MaxHosts)
	} else {
		b.WriteString(units.Count(tasks, "slot", "slots"))
	}
	switch {
	case d.Elastic:
	case d.PerHost > 0:
		fmt.Fprintf(&b, ", %d on each host", d.PerHost)
	case d.MaxHosts == 1:
		b.WriteString(" on one host")
	case d.MinHosts > 0 && d.MinHosts == d.MaxHosts:
		fmt.Fprintf(&b, " on %d hosts", d.MinHosts)
	}
	if d.Exclusive {
		b.WriteString(" on hosts that no other run uses")
	}
	for _, g := range d.Groups {
		if g.GPUs == AllGPUs {
			b.WriteString(" and all GPUs of each host")
			break
		} else if g.GPUs > 0 {
			fmt.Fprintf(&b, " and %s of each host", units.Count(g.GPUs, "GPU", "GPUs"))
			break
		} else if g.PerTask > 0 {
			fmt.Fprintf(&b, " and %s for each task", units.Count(g.PerTask, "GPU", "GPUs"))
			break
		}
	}
	if len(d.Select) > 0 {
		b.WriteString(" on " + shorten.List(d.Select, maxNamed))
	}
	return shorten.Text(b.String(), 4*maxWords)
}

// missing describes the free capacity of the hosts, and why it is not enough for a run.
func (p *planner) missing(r *run) string {
	hosts := p.class(r).hosts
	for _, g := range r.Demand.Groups {
		if g.Host != "" && !slices.ContainsFunc(hosts, func(h *host) bool { return h.Name == g.Host }) {
			return p.noHost(g.Host)
		}
	}
	if len(hosts) == 0 {
		return "no host in the queue matches" + whoIsThere(p.names())
	}
	var free, closed, full listed
	for _, h := range hosts {
		room := r.unguarded(h)
		_, alone := h.free(r)
		at := slices.IndexFunc(r.Refusals, func(f refusal) bool { return f.Host == h.Name })
		switch state := h.state(); {
		case state != HostReady:
			closed.add("%s", h.closed())
		case at >= 0:
			closed.add("%s refused it (%s)", h.Name, shorten.Text(r.Refusals[at].Reason, 2*maxWords))
		case r.over && !alone, room.slots <= 0 && r.Demand.Exclusive && h.slots > 0:
			full.add("%s in use", h.Name)
		case room.slots <= 0:
			full.add("%s full", h.Name)
		case h.isContested(r):
			full.add("GPUs %s are not all free on %s", strings.Join(r.shape.listed, ","), h.Name)
		case r.shape.hasGPUs:
			free.add("%s and %s free on %s", slotsText(room.slots), units.Count(room.gpus, "GPU", "GPUs"), h.Name)
		case room.slots >= noBound:
			free.add("%s free on %s", slotsText(room.slots), h.Name)
		default:
			free.add("%d free on %s", room.slots, h.Name)
		}
	}
	all := slices.Concat(free.texts, closed.texts, full.texts)
	parts := all[:min(len(all), maxNamed)]
	if more := free.n + closed.n + full.n - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more hosts without capacity", more))
	}
	text := strings.Join(parts, ", ")
	if n := len(hosts); n < r.Demand.MinHosts {
		return fmt.Sprintf("only %s: %s", units.Count(n, "such host", "such hosts"), text)
	}
	return text
}

// isContested reports whether other runs have GPUs of the host that a run requests by name.
func (h *host) isContested(r *run) bool {
	is := false
	h.each(func(o *run, _ room, _ bool) { is = is || o != r && h.contest(r.shape.listed, h.devicesOf(o)) })
	return is
}

// listed holds the first strings of a list, and the list's length.
type listed struct {
	texts []string
	n     int
}

func (l *listed) add(format string, args ...any) {
	if l.n++; len(l.texts) < maxNamed {
		l.texts = append(l.texts, fmt.Sprintf(format, args...))
	}
}

func slotsText(n int) string {
	if n >= noBound {
		return "any number of slots"
	}
	return units.Count(n, "slot", "slots")
}

// Impossible returns why the fleet's hosts could never meet a demand even if all were empty and
// ready, or nil if they could.
func (p *planner) Impossible(d Demand) error {
	r := &run{}
	r.set(d)
	hosts := p.class(r).hosts
	if p.search(r, hosts, r.all) != nil {
		return nil
	}
	return textError(p.tooSmall(r, hosts))
}

// tooSmall returns why hosts could not meet a demand even if they were empty.
func (p *planner) tooSmall(r *run, hosts []*host) string {
	d, pinned := &r.Demand, map[string]int{}
	for _, g := range d.Groups {
		if g.Host == "" {
			continue
		}
		h := p.host(g.Host)
		pinned[g.Host] += g.Tasks
		switch {
		case h == nil:
			return p.noHost(g.Host)
		case !slices.Contains(hosts, h):
			return fmt.Sprintf("host %s does not match: %s", g.Host, wants(d, r.shape.tasks))
		case r.all(h).slots < pinned[g.Host]:
			return fmt.Sprintf("host %s has %s; %d are needed", h.Name, units.Count(h.Slots, "slot", "slots"), pinned[g.Host])
		}
	}
	if len(pinned) == 1 && r.shape.max == 1 {
		for _, g := range d.Groups {
			if g.Host != "" {
				return fmt.Sprintf("host %s has %s; %d are needed on one host", g.Host, units.Count(p.host(g.Host).Slots, "slot", "slots"), r.shape.tasks)
			}
		}
	}
	if len(hosts) == 0 {
		return fmt.Sprintf("no host in the queue can ever have %s%s", wants(d, r.shape.tasks), whoIsThere(p.names()))
	}
	seats := p.choice // left by the unsuccessful search
	for _, s := range seats {
		s.clear()
		s.fits = s.fitting(&r.shape, sizes(&r.shape))
	}
	slices.SortFunc(seats, roomiest)
	sh, largest := &r.shape, seats[0]
	wanted := sh.min
	if sh.perHost > 0 {
		wanted = (sh.tasks + sh.perHost - 1) / sh.perHost
	}
	room := slices.IndexFunc(seats, func(s *seat) bool { return s.fits < max(1, min(sh.perHost, sh.tasks)) })
	if room < 0 {
		room = len(seats)
	}
	total := 0
	for _, s := range seats[:min(sh.max, len(seats))] {
		total += s.fits
	}
	switch {
	case largest.fits == 0:
		return fmt.Sprintf("no host has the capacity for a task: %s are needed", wants(d, sh.tasks))
	case wanted > room && sh.perHost > 0:
		return fmt.Sprintf("%s for %s each; %d are needed", units.Count(room, "host has capacity", "hosts have capacity"),
			units.Count(min(sh.perHost, sh.tasks), "task", "tasks"), wanted)
	case wanted > room:
		return fmt.Sprintf("%s capacity; %d are needed", units.Count(room, "host has", "hosts have"), wanted)
	}
	who, has := fmt.Sprintf("%d hosts together", min(sh.max, len(seats))), "have"
	if len(seats) == 1 || sh.max == 1 {
		who, has, total = "host "+largest.host.Name, "has", largest.fits
	}
	if sh.hasGPUs {
		return fmt.Sprintf("%s %s capacity for %s with their GPUs; %d are needed", who, has, units.Count(total, "task", "tasks"), sh.tasks)
	}
	return fmt.Sprintf("%s %s %s; %d are needed", who, has, units.Count(total, "slot", "slots"), sh.tasks)
}
