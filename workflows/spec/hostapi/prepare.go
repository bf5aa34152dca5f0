package hostapi

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// PrepareInput contains the whole cluster of a run on several hosts.
type PrepareInput struct {
	// Run is as in [ReserveInput].
	Run        string  `json:"run,omitempty"`
	Generation int     `json:"generation"`
	Cluster    Cluster `json:"cluster"`
	// SharedCluster replaces the cluster if many hosts receive it.
	SharedCluster *Shared `json:"shared_cluster,omitempty"`
	// Witnesses lists the services through which this host asks the generation's other hosts
	// whether they reach the server. It is set if each host provides such a service; see
	// [ReserveOutput.Witness].
	Witnesses []spec.HostService `json:"witnesses,omitempty"`
}

// PrepareOutput is the output of Prepare.
type PrepareOutput struct {
	// Reaches reports whether the host reaches all its witnesses.
	Reaches bool `json:"reaches,omitempty"`
}

// DenyInput asks a host to stop confirming, for another host's tasks, that the server does not
// answer.
type DenyInput struct {
	spec.Group
	Tasks []string `json:"tasks"`
	// Offer is the last denied offer.
	Offer int64 `json:"offer"`
}

// DenyOutput contains the time since the host may last have confirmed that the server does not
// answer.
type DenyOutput struct {
	Quiet time.Duration `json:"quiet"`
}
