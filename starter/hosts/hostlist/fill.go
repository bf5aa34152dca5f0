package hostlist

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Slots returns the total number of slots. ok is false if a host's slots are unknown.
func Slots(hosts []Host) (n int, ok bool) {
	for _, h := range hosts {
		if h.Slots == 0 {
			return 0, false
		}
		n += h.Slots
	}
	return n, true
}

// Limit gives a host n tasks. It fails if the host was given fewer slots.
func Limit(h Host, n int) (Host, error) {
	if !h.Implied && h.Slots > 0 && h.Slots < n {
		return h, fmt.Errorf("%s on host %s need as many slots, but it has %d; increase its slots",
			units.Count(n, "task", "tasks"), h.Name, h.Slots)
	}
	h.Slots = n
	return h, nil
}

// Fill assigns a host to every task, in rank order. It fills each host's slots before the next
// host's or, with deal, takes one slot from each host in turn. Tasks with an address keep it,
// and take one of its host's slots.
func Fill(groups []spec.TaskGroup, hosts []Host, deal bool) error {
	room := list.Of(hosts, func(h Host) int { return h.Slots })
	tasks := 0
	for i, g := range groups {
		tasks += g.Size()
		for j, address := range g.Addresses {
			at, err := indexOf(hosts, address)
			if err != nil {
				return fmt.Errorf("tasks[%d].addresses[%d]: %w", i, j, err)
			}
			room[at]--
			if name, port, _ := spec.SplitAddress(address); name != hosts[at].Name {
				g.Addresses[j] = hosts[at].Name // otherwise the task could run on any host
				if port > 0 {
					g.Addresses[j] = net.JoinHostPort(hosts[at].Name, strconv.Itoa(port))
				}
			}
		}
	}
	total, _ := Slots(hosts)
	if tasks > total {
		return fmt.Errorf("%s need %s, but -H or --hostfile lists %d (%s); add slots, or use fewer tasks",
			units.Count(tasks, "task", "tasks"), units.Count(tasks, "slot", "slots"), total, listed(hosts))
	}
	for i := range room {
		if room[i] < 0 {
			return fmt.Errorf("host %s has %s, but %d tasks have its address; increase its slots",
				hosts[i].Name, units.Count(hosts[i].Slots, "slot", "slots"), hosts[i].Slots-room[i])
		}
	}
	at := 0
	for i := range groups {
		g := &groups[i]
		if len(g.Addresses) > 0 {
			continue
		}
		for range g.Size() {
			for room[at] == 0 {
				at = (at + 1) % len(room)
			}
			room[at]--
			g.Addresses = append(g.Addresses, hosts[at].Name)
			if deal {
				at = (at + 1) % len(room)
			}
		}
		if len(g.Addresses) > 0 {
			g.Count = nil
		}
	}
	return nil
}

// indexOf returns the index of an address's host. A loopback address means this machine.
func indexOf(hosts []Host, address string) (int, error) {
	name, _, err := spec.SplitAddress(address)
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(hosts, func(h Host) bool { return h.Name == name || h.Here && spec.IsLoopback(name) })
	if at < 0 {
		return 0, fmt.Errorf("%q is not on any of the hosts in -H or --hostfile (%s); add the host", address, listed(hosts))
	}
	return at, nil
}

// listed returns for example "a:2, b:4".
func listed(hosts []Host) string {
	names := list.Of(hosts, func(h Host) string { return fmt.Sprintf("%s:%d", h.Name, h.Slots) })
	const most = 8
	return shorten.List(names, most)
}
