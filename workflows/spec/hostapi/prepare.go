package hostapi

// PrepareInput has the whole cluster of a run on several hosts.
type PrepareInput struct {
	// Run is as in [ReserveInput].
	Run        string  `json:"run,omitempty"`
	Generation int     `json:"generation"`
	Cluster    Cluster `json:"cluster"`
}
