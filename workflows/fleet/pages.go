package fleet

// HostsPerPage and WaitingPerPage limit the hosts and the runs in one answer of a fleet, because a
// server rejects answers above 2 MiB.
const HostsPerPage, WaitingPerPage = 100, 1000

// AllHosts returns a fleet's hosts, page by page. Each page starts after a name.
func AllHosts(ask func(after string) ([]HostStatus, error)) ([]HostStatus, error) {
	var all []HostStatus
	for after := ""; ; after = all[len(all)-1].Name {
		page, err := ask(after)
		if all = append(all, page...); err != nil || len(page) < HostsPerPage {
			return all, err
		}
	}
}

// AllWaiting returns the waiting runs, page by page. Each page starts after a position.
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

// HostsAfter returns the hosts that come after a name, limited to most.
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
