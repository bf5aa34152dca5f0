package fleet

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
	first, found := ro.hostIndex(name)
	if found {
		first++
	}
	hosts := ro.hosts[first:]
	hosts = hosts[:min(most, len(hosts))]
	list := make([]HostStatus, 0, len(hosts))
	for _, h := range hosts {
		list = append(list, h.status())
	}
	return list
}
