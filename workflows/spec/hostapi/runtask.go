package hostapi

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// RunTaskInput identifies a task to run.
type RunTaskInput struct {
	// Workflow is the run's workflow ID, if it differs from the calling workflow's.
	Workflow string `json:"workflow,omitempty"`
	// Run is as in [ReserveInput]. Execution is the number of earlier workflow executions that ran
	// the task.
	Run        string `json:"run,omitempty"`
	Execution  int    `json:"execution,omitempty"`
	Task       string `json:"task"`
	Generation int    `json:"generation"`
	// Launch is the number of times that the workflow had already started the task in this
	// generation.
	Launch int `json:"launch"`
	// Offer orders the launch's offers, each of which has its own attempts. Resumed reports whether
	// an earlier offer started a process. Bounds are the run's two bounds, or nil.
	Offer   int64   `json:"offer,omitempty"`
	Resumed bool    `json:"resumed,omitempty"`
	Bounds  *Bounds `json:"bounds,omitempty"`
	// Added is set for a task that is not in the spec or whose command was changed.
	Added *spec.Task `json:"added,omitempty"`
}

// Bounds are a run's two bounds; see package lease.
type Bounds struct {
	Short time.Duration `json:"short"`
	Long  time.Duration `json:"long"`
}
