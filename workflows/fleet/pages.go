package fleet

import (
	"slices"
	"sort"
)

// HostsPerPage and WaitingPerPage are the numbers of hosts and of runs in one answer of a fleet: a
// server takes no answer above 2 MiB.
const HostsPerPage, WaitingPerPage = 100, 1000

// AllHosts asks for the hosts of a fleet, page after page. Each page begins after a name.
func AllHosts(ask func(after string) ([]HostStatus, error)) ([]HostStatus, error) {
	var all []HostStatus
	for after := ""; ; after = all[len(all)-1].Name {
		page, err := ask(after)
		if all = append(all, page...); err != nil || len(page) < HostsPerPage {
			return all, err
		}
	}
}

// AllWaiting asks for the runs that wait, page after page. Each page begins after a position.
func AllWaiting(ask func(after int) ([]Waiting, error)) ([]Waiting, error) {
	var all []Waiting
	for {
		page, err := ask(len(all))
		if all = append(all, page...); err != nil || len(page) < WaitingPerPage {
			return all, err
		}
	}
}

// Hosts returns all hosts, by name.
func (ro *roster) Hosts() []HostStatus { return ro.HostsAfter("", len(ro.hosts)) }

// HostsAfter returns the hosts that come after a name, at most so many.
func (ro *roster) HostsAfter(name string, most int) []HostStatus {
	first := 0
	if name != "" {
		first = sort.Search(len(ro.hosts), func(i int) bool { return ro.hosts[i].Name > name })
	}
	hosts := ro.hosts[first:]
	hosts = hosts[:min(most, len(hosts))]
	list := make([]HostStatus, 0, len(hosts))
	for _, h := range hosts {
		list = append(list, h.status())
	}
	return list
}

// Count returns the number of hosts.
func (ro *roster) Count() int { return len(ro.hosts) }

// AnyHost returns the first host that answers and is accepted.
func (ro *roster) AnyHost(accept func(name string) bool) (Host, bool) {
	i := slices.IndexFunc(ro.hosts, func(h *host) bool { return !h.silent && accept(h.Name) })
	if i < 0 {
		return Host{}, false
	}
	return ro.hosts[i].Host, true
}

// Queue returns the runs that wait, in their order.
func (m *Machine) Queue() []Waiting { return m.QueueAfter(0, len(m.waiting)) }

// Front returns the first runs of the queue, at most so many.
func (m *Machine) Front(most int) []Waiting { return m.QueueAfter(0, most) }
