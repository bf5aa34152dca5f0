package hostapi

// Prepare tells the host the whole cluster, if it spans several hosts and rank 0 is reached.
const Prepare Activity[PrepareInput, None] = "Prepare"

// PrepareInput tells a host the whole cluster of a run on several hosts.
type PrepareInput struct {
	// Run is as in [ReserveInput].
	Run        string  `json:"run,omitempty"`
	Generation int     `json:"generation"`
	Cluster    Cluster `json:"cluster"`
}
