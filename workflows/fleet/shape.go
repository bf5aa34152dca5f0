package fleet

import (
	"cmp"
	"slices"
	"strings"
)

// shape is a demand in the form that the search for places uses.
type shape struct {
	tasks    int
	groups   []group // in rank order
	byNeed   []int   // indexes of groups, the hardest to place first
	hasGPUs  bool
	listed   []string // GPUs that the groups name
	min, max int      // of hosts
	perHost  int
	spread   bool
	alone    bool
	prefer   []string
}

// group is a demand's group, with its first task's rank.
type group struct {
	Group
	first  int
	listed []string // its Devices
}

func shapeOf(d Demand) shape {
	s := shape{min: d.MinHosts, max: d.MaxHosts, perHost: d.PerHost, spread: d.Spread, alone: d.Exclusive, prefer: d.Prefer}
	for i, g := range d.Groups {
		at := group{Group: g, first: s.tasks}
		if g.Devices != "" {
			at.listed = strings.Split(g.Devices, ",")
			s.listed = append(s.listed, at.listed...)
		}
		s.groups = append(s.groups, at)
		s.byNeed = append(s.byNeed, i)
		s.tasks += g.Tasks
		s.hasGPUs = s.hasGPUs || g.GPUs != 0 || g.PerTask > 0
	}
	if s.max == 0 || s.max > s.tasks {
		s.max = s.tasks
	}
	slices.SortStableFunc(s.byNeed, func(a, b int) int { return -cmp.Compare(need(s.groups[a]), need(s.groups[b])) })
	return s
}

// need orders groups: tasks that are bound to a host come first, then tasks that use all GPUs, and
// then the rest by the number of GPUs.
func need(g group) int {
	switch {
	case g.Host != "":
		return noBound
	case g.GPUs == AllGPUs:
		return noBound - 1
	}
	return g.GPUs + g.PerTask
}
