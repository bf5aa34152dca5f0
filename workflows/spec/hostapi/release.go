package hostapi

import (
	"encoding/json"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ReleaseInput names a run.
type ReleaseInput struct {
	// Run is as in [ReserveInput].
	Run string `json:"run,omitempty"`
}

// ReleaseOutput has every exit of every task that this host had, by task.
type ReleaseOutput struct {
	Exits map[string][]spec.Exit `json:"exits"`
	// Values are the JSON values that tasks returned, if they fit.
	Values map[string]json.RawMessage `json:"values,omitempty"`
	// LeftOut names the tasks whose values did not fit.
	LeftOut []string `json:"left_out,omitempty"`
	// Output has the last lines of the output if the spec asks for it.
	Output []string `json:"output,omitempty"`
	// Usage is the use of all processes known here, including those not in Exits.
	Usage spec.Usage `json:"usage,omitzero"`
	// SharedMemory is nil if its processes have left little or nothing in shared memory.
	SharedMemory *spec.SharedMemory `json:"shared_memory,omitempty"`
	// Served reports whether the run has a queue of closures, which must end with it.
	Served bool `json:"served,omitempty"`
}
