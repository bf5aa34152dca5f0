package taskservices

import (
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Plans stores data about the runs that have tasks on a host, on its disk.
type Plans interface {
	// Run returns a run that has or had this host.
	Run(runkey.Run) (Run, error)
	// Note changes the notes of a run, and returns the run once they are on disk. The
	// function must replace maps and slices instead of changing them in place.
	Note(runkey.Run, func(*Notes)) (Run, error)
}

// Run is a run as the services of its tasks see it.
type Run struct {
	Key        runkey.Run
	Generation int
	Spec       *spec.RunSpec
	// Added has the names of the tasks here that are not in the spec.
	Added []string
	// Sealed reports whether nothing is restarted on this host, and Released whether the run
	// has released the host.
	Sealed, Released bool
	Notes
}

// Notes are data about a run that the services keep on disk, for the next host worker.
type Notes struct {
	// Stopping is the latest state of stopping together that the run has sent.
	Stopping *spec.Stopping `json:"stopping,omitempty"`
	// Served reports whether tasks have served or scheduled closures here, so that the run
	// has a queue of closures.
	Served bool `json:"served,omitempty"`
	// Calls are the closures during which processes exited with 0. Such processes have failed,
	// and perhaps only an earlier host worker knew that.
	Calls []EndedCall `json:"calls,omitempty"`
	// Serving maps each task that serves here to the life of the broker that its process last
	// asked. A task that leaves in order is removed.
	Serving map[string]string `json:"serving,omitempty"`
}

// here returns a run if it has this host.
func (c *Config) here(run runkey.Run) (Run, bool) {
	r, err := c.Plans.Run(run)
	return r, err == nil && !r.Released
}

// ofQueue returns the reference to the run that its queue of closures uses.
func (r *Run) ofQueue() spec.RunRef {
	return spec.RunRef{WorkflowID: r.Key.WorkflowID, RunID: r.Key.RunID}
}
