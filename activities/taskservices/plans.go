package taskservices

import (
	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Plans are what a host keeps on disk of the runs that have tasks on it.
type Plans interface {
	// Run returns a run that has, or had, this host.
	Run(runkey.Run) (Run, error)
	// Note changes what is noted of a run, and returns it once that is on disk. The
	// change replaces maps and slices, and leaves them as they are.
	Note(runkey.Run, func(*Notes)) (Run, error)
}

// Run is a run as the services of its tasks know it.
type Run struct {
	Key        runkey.Run
	Generation int
	Spec       *spec.RunSpec
	// Added names the tasks here that are not those of the spec.
	Added []string
	// Sealed reports whether nothing is restarted on this host, and Released whether the run
	// has given it back.
	Sealed, Released bool
	Notes
}

// Notes are what the services keep of a run on disk, for the next host worker.
type Notes struct {
	// Stopping is the last that the run said of stopping together.
	Stopping *spec.Stopping `json:"stopping,omitempty"`
	// Served reports whether tasks have served or scheduled closures here, so that the run
	// has a queue of them.
	Served bool `json:"served,omitempty"`
	// Calls names the closures that processes exited with 0 in the middle of: those
	// have failed. Only this host worker's predecessor may have known.
	Calls []EndedCall `json:"calls,omitempty"`
	// Serving has the tasks that serve here, each with the life of the broker that its
	// process has asked last. One that leaves in order is not in it any more.
	Serving map[string]string `json:"serving,omitempty"`
	// Servers are the processes of those tasks that may have been given closures, by the
	// names under which they serve: the next broker settles as soon as it has heard of all.
	Servers map[string][]string `json:"servers,omitempty"`
	// Coordinators are the tasks that have scheduled closures here.
	Coordinators []string `json:"coordinators,omitempty"`
}

// here returns a run if it has this host.
func (c *Config) here(run runkey.Run) (Run, bool) {
	r, err := c.Plans.Run(run)
	return r, err == nil && !r.Released
}

// ofQueue names the run as its queue of closures does.
func (r *Run) ofQueue() spec.RunRef {
	return spec.RunRef{WorkflowID: r.Key.WorkflowID, RunID: r.Key.RunID}
}
