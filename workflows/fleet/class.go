package fleet

import (
	"path"
	"slices"
)

// class is the set of hosts, in any state, that may be used by demands with the same patterns.
// If every group of a demand names its host, the class consists of these hosts.
type class struct {
	hosts []*host
	// version is the roster version that hosts were chosen from.
	version int
	// lax reports whether tasks may run without GPUs, because the hosts all lack GPUs, or all lack
	// a known driver.
	lax bool
	// slots is the hosts' total if all of them may be oversubscribed, and 0 otherwise.
	slots int
}

// share returns how many tasks a host gets in proportion to its slots. The shares of all hosts add
// up to tasks. Each host must therefore be empty, and no other run fits on it.
func (c *class) share(h *host, tasks int) int {
	before := 0
	for _, o := range c.hosts[:slices.Index(c.hosts, h)] {
		before += o.Slots
	}
	return tasks*(before+h.Slots)/c.slots - tasks*before/c.slots
}

// selects reports whether a pattern matches name, or whether there are no patterns.
func selects(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}
