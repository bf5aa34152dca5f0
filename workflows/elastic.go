package workflows

import (
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// An elastic run uses as many hosts as are free, with the same number of tasks on each. The number
// of hosts may change with each generation. The fleet decides how many when the run asks; this file
// builds the request.

// size returns the generation's number of tasks, or 0 for the whole spec.
func (pl *placer) size() int {
	if !pl.spec.IsElastic() {
		return 0
	}
	return len(pl.sized.TaskList())
}

// elasticStatus returns the size of the generation, or nil if the run is not elastic.
func (v *reporter) elasticStatus() *spec.ElasticStatus {
	if !v.spec.IsElastic() {
		return nil
	}
	e := &spec.ElasticStatus{Range: v.spec.Hosts.Count, Grow: v.spec.Elastic.Grow}
	if !v.machine.Placing() {
		e.Hosts, e.Tasks = len(v.hosts), v.placer.size()
	}
	return e
}

// grows reports whether the group's next generation may have more hosts.
func (pl *placer) grows() bool {
	_, most := pl.spec.Hosts.Count.Bounds()
	return pl.spec.IsElastic() && pl.spec.Elastic.Grow == spec.GrowNextGeneration && len(pl.hosts) < most
}

// demand returns what the run requests from the fleet.
func (pl *placer) demand(p placement) fleet.Demand {
	left := 0
	for _, h := range pl.hosts {
		if !pl.lost[h.Queue] && !p.requeue {
			left++
		}
	}
	return fleet.DemandOf(pl.spec).With(left, pl.spec.Elastic.Grow)
}

// gone records that an elastic run continues without a host.
func (pl *placer) gone(h *host) {
	if pl.spec.IsElastic() {
		pl.lost[h.Queue] = true
	}
}

// found records that an elastic run's host is up even if it was lost before.
func (pl *placer) found(h *host) {
	if pl.spec.IsElastic() {
		delete(pl.lost, h.Queue)
	}
}
