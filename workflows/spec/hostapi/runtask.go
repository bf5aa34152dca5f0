package hostapi

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// RunTaskInput names a task to run.
type RunTaskInput struct {
	// Workflow is the ID of the workflow of the run, if it is not the calling one.
	Workflow string `json:"workflow,omitempty"`
	// Run is as in [ReserveInput], and Execution counts the executions of the workflow that
	// have had the task, from 0.
	Run        string `json:"run,omitempty"`
	Execution  int    `json:"execution,omitempty"`
	Task       string `json:"task"`
	Generation int    `json:"generation"`
	// Launch counts how often the workflow started the task in this generation, from 0.
	Launch int `json:"launch"`
	// Offer orders the offers of the launch; each has attempts of its own. Resumed reports whether
	// an earlier one had a process. Bounds are the two bounds of the run, if it has two.
	Offer   int64   `json:"offer,omitempty"`
	Resumed bool    `json:"resumed,omitempty"`
	Bounds  *Bounds `json:"bounds,omitempty"`
	// Added is set for a task outside the spec, or with a changed command.
	Added *spec.Task `json:"added,omitempty"`
}

// Bounds are the two bounds of a run; see package lease.
type Bounds struct {
	Short time.Duration `json:"short"`
	Long  time.Duration `json:"long"`
}
