package hostapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ReserveInput requests slots for a run's tasks.
type ReserveInput struct {
	Spec       *spec.RunSpec `json:"spec"` // validated, defaults filled in
	Generation int           `json:"generation"`
	// SharedSpec replaces Spec if many hosts receive it. It refers to a ReserveInput with the spec.
	SharedSpec *Shared `json:"shared_spec,omitempty"`
	// Tasks lists the tasks for this host. If it is empty, the host gets all tasks and the whole
	// cluster, and Prepare is not needed.
	Tasks []string `json:"tasks,omitempty"`
	// Group distinguishes a run's reservations. There is one for tasks that any host may take, and
	// one for each host with pinned tasks. Two reservations may be on the same host.
	Group int `json:"group,omitempty"`
	// First is the number of each task's first process in this generation.
	First int `json:"first,omitempty"`
	// Run is the execution that identifies the run to hosts, if it differs from the calling
	// execution.
	Run string `json:"run,omitempty"`
	// Devices are the run's exclusive GPUs on the host. It is empty if the fleet was not asked,
	// or if the run claims no GPUs.
	Devices []string `json:"devices,omitempty"`
	// Elapsed is the run time so far, which max_run_time limits.
	Elapsed time.Duration `json:"elapsed,omitempty"`
	// Shipped are hosts that already received the run's files, in addition to the spec's source.
	Shipped []spec.HostService `json:"shipped,omitempty"`
	// Stopping is the latest state of stopping together in an earlier generation, or nil if no stop
	// was requested.
	Stopping *spec.Stopping `json:"stopping,omitempty"`

	// Unknown describes a field that a newer program has sent and that this program does not know.
	Unknown string `json:"-"`
}

// UnmarshalJSON accepts unknown fields from a newer program, so that the host can refuse them
// with a proper error.
func (in *ReserveInput) UnmarshalJSON(text []byte) error {
	type plain ReserveInput
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(in)); err != nil {
		*in = ReserveInput{Unknown: strings.TrimPrefix(err.Error(), "json: ")}
	}
	return nil
}

// ReserveOutput describes where the tasks are.
type ReserveOutput struct {
	Host     string `json:"host"`
	Instance string `json:"instance"`
	// Addresses are the tasks' addresses, in the order of the request (rank order for all tasks).
	Addresses []string `json:"addresses"`
	// MasterPort and JAXPort are ports for coordinators that the run's first task may host. Only
	// those on rank 0's host are used.
	MasterPort int `json:"master_port"`
	JAXPort    int `json:"jax_port"`
	// Service describes how to read the run's files on this host, or is nil if only the host can
	// read them.
	Service *spec.HostService `json:"service,omitempty"`
	// Witness describes how the run's other hosts can ask this host whether it reaches the server,
	// or is nil if they cannot.
	Witness *spec.HostService `json:"witness,omitempty"`
	// Shipped describes how to fetch the run's files from this host, or is nil if that is not
	// possible.
	Shipped *spec.HostService `json:"shipped,omitempty"`
}
