package hostapi

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// RunTaskInput identifies a task to run.
type RunTaskInput struct {
	// Workflow is the run's workflow ID, if it differs from the calling workflow's.
	Workflow string `json:"workflow,omitempty"`
	// Run is as in [ReserveInput]. Execution counts the workflow executions that have had the task,
	// from 0.
	Run        string `json:"run,omitempty"`
	Execution  int    `json:"execution,omitempty"`
	Task       string `json:"task"`
	Generation int    `json:"generation"`
	// Launch counts how often the workflow started the task in this generation, from 0.
	Launch int `json:"launch"`
	// Offer orders the launch's offers, each with its own attempts. Resumed reports whether an
	// earlier offer had a process. Bounds are the run's two bounds, if it has two.
	Offer   int64   `json:"offer,omitempty"`
	Resumed bool    `json:"resumed,omitempty"`
	Bounds  *Bounds `json:"bounds,omitempty"`
	// Stop reports whether the run stops the task. A process is then adopted and stopped, and none is
	// started.
	Stop bool `json:"stop,omitempty"`
	// Added is set for a task outside the spec, or with a changed command.
	Added *spec.Task `json:"added,omitempty"`
}

// Bounds are a run's two bounds; see package lease.
type Bounds struct {
	Short time.Duration `json:"short"`
	Long  time.Duration `json:"long"`
}
