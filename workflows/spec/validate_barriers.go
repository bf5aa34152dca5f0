package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// checkBarriers refuses local barriers where the tasks are pinned to several hosts.
// Where some are pinned and others are not, only their placement tells.
func (c *checker) checkBarriers(s *RunSpec) {
	if s.Barriers != BarriersLocal {
		return
	}
	if hosts := s.pinnedHosts(); len(hosts) > 1 {
		c.add("barriers", fmt.Sprintf("local barriers need all tasks on one host, but the addresses name %s", shorten.List(hosts, 3)),
			"write barriers: "+string(BarriersServer)+", or pin all tasks to one host")
	}
}

// pinnedHosts returns the hosts that the addresses name. Those on the loopback
// interface name none.
func (s *RunSpec) pinnedHosts() []string {
	var hosts []string
	for _, g := range s.Tasks {
		for _, a := range g.Addresses {
			host, _, err := SplitAddress(a)
			if err != nil || IsLoopback(host) {
				continue
			}
			// Hosts have no case.
			if !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}
