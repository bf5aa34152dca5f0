package spec

import (
	"fmt"
	"path"
	"reflect"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/shorten"
)

// Hosts says on which hosts the tasks are, and on how many. In YAML and JSON a number alone
// is the count.
type Hosts struct {
	Count       *int     `json:"count,omitempty"`
	PerHost     *int     `json:"per_host,omitempty"`
	Select      []string `json:"select,omitempty"`
	Constraints []string `json:"constraints,omitempty"`
	Strategy    Strategy `json:"strategy,omitempty"`
	Exclusive   bool     `json:"exclusive,omitempty"`
}

// Strategy says how tasks are shared out among hosts.
type Strategy string

// The values of [Strategy].
const (
	// StrategyPack fills one host after the other.
	StrategyPack Strategy = "pack"
	// StrategySpread deals the tasks out, one by one, over as many hosts as possible.
	StrategySpread Strategy = "spread"
)

var strategies = []Strategy{StrategyPack, StrategySpread}

// Priorities of runs go from FirstPriority, which comes first, to LastPriority.
const FirstPriority, LastPriority = 1, 5

var hostsType = reflect.TypeFor[Hosts]()

func (c *checker) checkHostPattern(p, pattern string) {
	_, err := path.Match(pattern, "")
	switch {
	case pattern == "":
		c.add(p, "is empty, and names no host", "write a name, or a pattern such as gpu-*")
	case err != nil:
		c.add(p, Quote(pattern)+" is no pattern", "write a name, or a pattern such as gpu-* or gpu-[1-9]")
	default:
		c.checkText(p, pattern)
	}
}

func (c *checker) checkConstraint(path, text string) {
	_, err := ParseConstraint(text)
	c.addError(path, err)
}

// checkHosts compares the hosts that are wanted with the tasks.
func (c *checker) checkHosts(s *RunSpec) {
	n, h := s.total(), s.Hosts
	if c.isMalformed("tasks") || n < 1 {
		return
	}
	pinned := s.pinnedHosts()
	c.checkHostCount(s, n, pinned)
	for _, host := range pinned {
		if len(h.Select) > 0 && !slices.ContainsFunc(h.Select, func(pattern string) bool {
			ok, err := path.Match(pattern, host)
			return ok || err != nil
		}) {
			c.add("hosts.select", fmt.Sprintf("no pattern matches %s, which an address names", host), "select it, too, or correct the address")
		}
	}
}

func (c *checker) checkHostCount(s *RunSpec, n int, pinned []string) {
	h := s.Hosts
	switch {
	case h.Count == nil || *h.Count < 1:
		return
	case *h.Count > n:
		c.add("hosts.count", fmt.Sprintf("is %d, and the run has only %d tasks", *h.Count, n), "have a task for each host, or fewer hosts")
	case h.PerHost != nil && *h.PerHost > 0 && (n+*h.PerHost-1) / *h.PerHost != *h.Count:
		c.add("hosts.per_host", fmt.Sprintf("%d tasks, %d on each host, do not make %d hosts", n, *h.PerHost, *h.Count),
			fmt.Sprintf("have %d tasks, or leave out count or per_host", *h.Count**h.PerHost))
	case len(pinned) > *h.Count:
		c.add("hosts.count", fmt.Sprintf("is %d, and the addresses name %s", *h.Count, shorten.List(pinned, 3)), "leave it out, or correct the addresses")
	case s.Barriers == BarriersLocal && *h.Count > 1:
		c.add("barriers", fmt.Sprintf("local barriers need all tasks on one host, but hosts.count is %d", *h.Count), "write barriers: "+string(BarriersServer)+", or count: 1")
	}
}
