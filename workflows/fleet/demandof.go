package fleet

import (
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// DemandOf returns a run's demand. The spec must be valid and have its defaults.
func DemandOf(s *spec.RunSpec) Demand {
	h := s.Hosts
	least, most := h.Count.Bounds()
	d := Demand{
		Select: h.Select, Spread: h.Strategy == spec.StrategySpread, Exclusive: h.Exclusive,
		PerHost: valueOf(h.PerHost), MinHosts: least, MaxHosts: most, Priority: valueOf(s.Priority),
	}
	if s.IsElastic() {
		d.Elastic, d.PerHost, d.JoinWait = true, s.TasksPerHost(), s.Elastic.JoinWait.Std()
	}
	if s.MaxRunTime != nil {
		d.MaxRunTime = s.MaxRunTime.Std()
	}
	if s.Barriers == spec.BarriersLocal {
		d.MaxHosts = 1
	}
	pools := map[string]int{} // for look-ups only
	for _, t := range s.TaskList() {
		g := groupOf(s, t, pools)
		if n := len(d.Groups); n > 0 && sameNeed(d.Groups[n-1], g) {
			d.Groups[n-1].Tasks++
			continue
		}
		d.Groups = append(d.Groups, g)
	}
	return d
}

// groupOf returns the group of one task. Types that use the same list of devices belong to one
// pool.
func groupOf(s *spec.RunSpec, t spec.Task, pools map[string]int) Group {
	g := Group{Tasks: 1}
	if t.Address != "" {
		// The address was validated before. An address on the loopback interface fixes the port,
		// not the host.
		if name, _, err := spec.SplitAddress(t.Address); err == nil && !spec.IsLoopback(name) {
			g.Host = name
		}
	}
	if g.PerTask = s.GPUsPerTaskOf(t.Type); g.PerTask > 0 {
		return g
	}
	devices, shared := s.DevicesOf(t.Type)
	if len(devices) == 0 {
		return g
	}
	g.GPUs = AllGPUs
	if !devices.Auto() {
		list := devices.Expand()
		g.GPUs, g.Devices = len(list), strings.Join(list, ",")
	}
	pool := t.Type
	if shared {
		pool = ""
	}
	if _, known := pools[pool]; !known {
		pools[pool] = len(pools)
	}
	g.Pool = pools[pool]
	return g
}

func sameNeed(a, b Group) bool {
	a.Tasks = b.Tasks
	return a == b
}

func valueOf(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
