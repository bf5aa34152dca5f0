package taskservices

import (
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Plans stores data on disk about the runs with tasks on a host.
type Plans interface {
	// Run returns the run with the given key, which uses or has used this host.
	Run(runkey.Run) (Run, error)
	// Note changes a run's notes, and returns the run once they are on disk. The function must
	// replace maps and slices instead of modifying them.
	Note(runkey.Run, func(*Notes)) (Run, error)
}

// Run is a run as its tasks' services see it.
type Run struct {
	Key        runkey.Run
	Generation int
	Spec       *spec.RunSpec
	// Added lists the tasks on this host that are not in the spec.
	Added []string
	// Sealed reports whether restarts on this host are prevented, and Released whether the run has
	// released the host.
	Sealed, Released bool
	Notes
}

// Notes is data about a run that the services keep on disk for the next host worker.
type Notes struct {
	// Stopping is the latest state of stopping together that the run has sent.
	Stopping *spec.Stopping `json:"stopping,omitempty"`
	// Served reports whether the run's closure queue was opened, as far as this host was told.
	Served bool `json:"served,omitempty"`
}

// here returns a run if it uses this host.
func (c *Config) here(run runkey.Run) (Run, bool) {
	r, err := c.Plans.Run(run)
	return r, err == nil && !r.Released
}

// ofQueue returns the reference to the run that its closure queue uses.
func (r *Run) ofQueue() spec.RunRef {
	return spec.RunRef{WorkflowID: r.Key.WorkflowID, RunID: r.Key.RunID}
}
