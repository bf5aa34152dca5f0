package hostapi

import (
	"encoding/json"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ReleaseInput identifies a run.
type ReleaseInput struct {
	// Run is as in [ReserveInput].
	Run string `json:"run,omitempty"`
}

// ReleaseOutput contains every exit of every task on this host, by task.
type ReleaseOutput struct {
	Exits map[string][]spec.Exit `json:"exits"`
	// Values are the JSON values that tasks returned, except those that do not fit.
	Values map[string]json.RawMessage `json:"values,omitempty"`
	// LeftOut lists the tasks whose values did not fit.
	LeftOut []string `json:"left_out,omitempty"`
	// Output contains the last lines of the output if the spec requests it.
	Output []string `json:"output,omitempty"`
	// Usage is the resource usage of all processes known to the host, including those missing from
	// Exits.
	Usage spec.Usage `json:"usage,omitzero"`
	// SharedMemory is nil if the processes left little or nothing in shared memory.
	SharedMemory *spec.SharedMemory `json:"shared_memory,omitempty"`
	// Served reports whether the run has a closure queue, which must be closed when the run
	// finishes.
	Served bool `json:"served,omitempty"`
}
