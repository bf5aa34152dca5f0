package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// roster holds a fleet's hosts.
type roster struct {
	hosts   []*host // by name
	cordons []named // of hosts that have left, the oldest first
	version int     // incremented whenever hosts change
}

// host returns the host with that name, or nil.
func (ro *roster) host(name string) *host {
	if i, ok := ro.hostIndex(name); ok {
		return ro.hosts[i]
	}
	return nil
}

func (ro *roster) hostIndex(name string) (int, bool) {
	return slices.BinarySearchFunc(ro.hosts, name, func(h *host, name string) int { return cmp.Compare(h.Name, name) })
}

// isBack reports whether a host has returned since the given time, with the same host worker or
// another. If so, its earlier silence does not count.
func (ro *roster) isBack(name string, since time.Time) bool {
	h := ro.host(name)
	return h != nil && !h.Silent && h.Since.After(since)
}

// CheckJoin returns an error if a host cannot join, because its name is in use by a living host or
// because the fleet is full. In that case, [Machine.Step] ignores the event.
func (ro *roster) CheckJoin(e Joined) error {
	h := ro.host(e.Host.Name)
	switch {
	case e.Host.Name == "" || e.Host.Instance == "":
		return fmt.Errorf("host name and instance are required")
	case e.Host.Slots < 0:
		return fmt.Errorf("host %s has %d slots; use 1 or more, or 0 for no limit", e.Host.Name, e.Host.Slots)
	case h != nil && h.Instance != e.Host.Instance && !h.Silent:
		return fmt.Errorf("another host worker already serves this queue as host %s; give this host another name with --host-name, or stop the other host worker", h.Name)
	case h == nil && len(ro.hosts) >= maxHosts && ro.longestSilent() == nil:
		return fmt.Errorf("the queue has reached its limit of %d hosts; no more can join", len(ro.hosts))
	}
	return nil
}

// longestSilent returns the host that has been silent the longest, or nil.
func (ro *roster) longestSilent() (longest *host) {
	for _, h := range ro.hosts {
		if h.Silent && h.users == 0 && (longest == nil || h.Since.Before(longest.Since)) {
			longest = h
		}
	}
	return longest
}

// CheckCordon returns why the host cannot be cordoned, or nil.
func (ro *roster) CheckCordon(e Cordoned) error { return ro.checkKnown(e.Name) }

// CheckUncordon returns why the host cannot be uncordoned, or nil.
func (ro *roster) CheckUncordon(e Uncordoned) error {
	if h := ro.host(e.Name); h != nil && !h.Cordon.On && len(h.Failing) > 0 {
		return fmt.Errorf("host %s is cordoned by its %s. It gets tasks again once the check succeeds", h.Name, h.Failing[0])
	}
	return ro.checkKnown(e.Name)
}

func (ro *roster) checkKnown(name string) error {
	if ro.host(name) != nil || slices.ContainsFunc(ro.cordons, func(n named) bool { return n.Name == name }) {
		return nil
	}
	return errors.New(UnknownHost(name, ro.names()))
}

// UnknownHost explains that the named host is not among a queue's hosts.
func UnknownHost(name string, there []string) string {
	return fmt.Sprintf("this queue has no host %q%s", name, whoIsThere(there))
}

// cordonOf returns a returning host's cordon.
func (ro *roster) cordonOf(name string) cordon {
	i := slices.IndexFunc(ro.cordons, func(n named) bool { return n.Name == name })
	if i < 0 {
		return cordon{}
	}
	c := ro.cordons[i].cordon
	ro.cordons = slices.Delete(ro.cordons, i, i+1)
	return c
}

func (ro *roster) noHost(name string) string {
	return fmt.Sprintf("no host worker has joined as %q%s; start `clusterrun worker` on that host, or correct the address", name, whoIsThere(ro.names()))
}

// names returns the names of the hosts.
func (ro *roster) names() (list []string) {
	for _, h := range ro.hosts {
		list = append(list, h.Name)
	}
	return list
}

// whoIsThere lists a queue's hosts, to append to a sentence.
func whoIsThere(names []string) string {
	if len(names) == 0 {
		return "; the queue has no hosts"
	}
	return "; the queue has " + shorten.List(names, maxNamed)
}

// Count returns the number of hosts, including silent ones.
func (ro *roster) Count() int { return len(ro.hosts) }

// AnyHost returns the first responsive host that accept accepts.
func (ro *roster) AnyHost(accept func(name string) bool) (Host, bool) {
	i := slices.IndexFunc(ro.hosts, func(h *host) bool { return !h.Silent && accept(h.Name) })
	if i < 0 {
		return Host{}, false
	}
	return ro.hosts[i].Host, true
}
