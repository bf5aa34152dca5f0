package workflows

import (
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// An elastic run has as many hosts as there is room on, from one generation to the next,
// and the same number of tasks on each. The fleet says how many when the run asks; what it
// asks for is here.

// size returns how many tasks the generation has; 0: all of the spec.
func (r *clusterRun) size() int {
	if !r.spec.IsElastic() {
		return 0
	}
	return len(r.sized.TaskList())
}

// elasticStatus returns the size of the generation, or nil where there is one only.
func (r *clusterRun) elasticStatus() *spec.ElasticStatus {
	if !r.spec.IsElastic() {
		return nil
	}
	e := &spec.ElasticStatus{Range: r.spec.Hosts.Count, Grow: r.spec.Elastic.Grow}
	if !r.machine.Placing() {
		e.Hosts, e.Tasks = len(r.hosts), r.size()
	}
	return e
}

// grows reports whether the next generation of the group may have more hosts.
func (r *clusterRun) grows() bool {
	_, most := r.spec.Hosts.Count.Bounds()
	return r.spec.IsElastic() && r.spec.Elastic.Grow == spec.GrowNextGeneration && len(r.hosts) < most
}

// demand returns what the run asks the fleet for.
func (r *clusterRun) demand() fleet.Demand {
	left := 0
	for _, h := range r.hosts {
		if !r.lost[h.queue] {
			left++
		}
	}
	return fleet.DemandOf(r.spec).With(left, r.spec.Elastic.Grow)
}

// gone notes that an elastic run goes on without a host.
func (r *clusterRun) gone(h *host) {
	if r.spec.IsElastic() {
		r.lost[h.queue] = true
	}
}

// found notes that a host of an elastic run is there, also where it was lost before.
func (r *clusterRun) found(h *host) {
	if r.spec.IsElastic() {
		delete(r.lost, h.queue)
	}
}
