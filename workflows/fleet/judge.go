package fleet

import "slices"

// History returns the days when runs finished on a host, the latest first.
func (m *Machine) History(host string) []Day { return m.past.ofHost(host) }

// ended records how a run finished or was restarted. r is the run if it has finished.
func (m *Machine) ended(run Run, e *Ended, r *run) []Action {
	if e == nil {
		return nil
	}
	var hosts []string
	if r != nil {
		for _, h := range r.held {
			hosts = append(hosts, h.Name)
		}
	}
	m.past.noteEnds(run, *e, hosts, m.now)
	return m.judgeHosts()
}

// judgeHosts updates the suspected hosts, and reports new ones.
func (m *Machine) judgeHosts() []Action {
	before := m.past.suspected
	m.past.suspect(m.now)
	var actions []Action
	for _, s := range m.past.suspected {
		if !slices.ContainsFunc(before, func(o suspected) bool { return o.host == s.host }) {
			actions = append(actions, Report{Host: s.host, Suspicion: s.Suspicion})
		}
	}
	for _, h := range m.hosts {
		m.judge(h)
	}
	return actions
}

// judge applies the suspicions and the settings to a host.
func (m *Machine) judge(h *host) {
	h.suspicion = m.past.suspicionOf(h.Name)
	h.sick = h.suspicion != nil && m.settings.SickHosts == CordonSickHosts
}
