package activities

import (
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// Holds returns what runs hold on this host, the oldest first, for a fleet that the host
// joins.
func (h *Host) Holds() []fleet.Holding {
	var holds []fleet.Holding
	for _, p := range h.plans.all() {
		tasks := len(p.Tasks) + len(p.Added)
		if p.Released || tasks == 0 {
			continue
		}
		holds = append(holds, fleet.Holding{
			Run:        fleet.Run{WorkflowID: p.Run.WorkflowID, RunID: p.Run.RunID},
			Generation: p.Generation, Tasks: tasks, Devices: p.Devices,
			Exclusive: p.Spec.Hosts.Exclusive,
		})
	}
	return holds
}
