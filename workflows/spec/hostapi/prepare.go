package hostapi

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// PrepareInput has the whole cluster of a run on several hosts.
type PrepareInput struct {
	// Run is as in [ReserveInput].
	Run        string  `json:"run,omitempty"`
	Generation int     `json:"generation"`
	Cluster    Cluster `json:"cluster"`
	// SharedCluster has the cluster instead, if many hosts receive it.
	SharedCluster *Shared `json:"shared_cluster,omitempty"`
	// Witnesses are the services of the other hosts of the generation that this host asks about the
	// server, if each host has one; see [ReserveOutput.Witness].
	Witnesses []spec.HostService `json:"witnesses,omitempty"`
}

// PrepareOutput is the output of Prepare.
type PrepareOutput struct {
	// Reaches reports whether the host reaches all of its witnesses.
	Reaches bool `json:"reaches,omitempty"`
}

// DenyInput asks a host to say no longer, for tasks of another host, that the server does not
// answer.
type DenyInput struct {
	spec.Group
	Tasks []string `json:"tasks"`
	// Offer is the last offer that is denied.
	Offer int64 `json:"offer"`
}

// DenyOutput has the time since the host may have said otherwise.
type DenyOutput struct {
	Quiet time.Duration `json:"quiet"`
}
