package fleet

// HostsPerPage and WaitingPerPage limit the hosts and the runs in one of a fleet's answers, because
// a server rejects answers above 2 MiB.
const HostsPerPage, WaitingPerPage = 100, 1000

// AllHosts returns a fleet's hosts, page by page. ask returns the page that starts after the given
// name.
func AllHosts(ask func(after string) ([]HostStatus, error)) ([]HostStatus, error) {
	var all []HostStatus
	for after := ""; ; after = all[len(all)-1].Name {
		page, err := ask(after)
		if all = append(all, page...); err != nil || len(page) < HostsPerPage {
			return all, err
		}
	}
}

// AllWaiting returns the waiting runs, page by page. ask returns the page that starts after the
// given position.
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

// HostsAfter returns at most most hosts, starting after the given name.
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
