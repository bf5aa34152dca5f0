package hostapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ReserveInput asks a host to take tasks of a run.
type ReserveInput struct {
	Spec       *spec.RunSpec `json:"spec"` // validated, defaults filled in
	Generation int           `json:"generation"`
	// SharedSpec has a ReserveInput with the spec instead, if many hosts receive it.
	SharedSpec *Shared `json:"shared_spec,omitempty"`
	// Tasks names the tasks for this host; empty means all, and then the host knows the whole
	// cluster and needs no Prepare.
	Tasks []string `json:"tasks,omitempty"`
	// Group distinguishes the reservations of a run: one for the tasks that any host may
	// take, and one for each host that tasks are pinned to. Two of them may be on the same
	// host.
	Group int `json:"group,omitempty"`
	// First is the number of the first process of every task in this generation.
	First int `json:"first,omitempty"`
	// Run is the execution by which hosts know the run, if it is not the calling one.
	Run string `json:"run,omitempty"`
	// Devices are the GPUs that the run has on the host for itself, or empty if the fleet was
	// not asked, or if the run claims none.
	Devices []string `json:"devices,omitempty"`
	// Elapsed is the run time so far, which max_run_time limits.
	Elapsed time.Duration `json:"elapsed,omitempty"`
	// Shipped are hosts that already received the run's files, in addition to the source in the
	// spec.
	Shipped []spec.HostService `json:"shipped,omitempty"`
	// Stopping is the latest state of stopping together, from an earlier generation; nil if
	// no stop was ever requested.
	Stopping *spec.Stopping `json:"stopping,omitempty"`

	// Unknown describes a field from a newer program that this program does not know.
	Unknown string `json:"-"`
}

// UnmarshalJSON accepts unknown fields of a newer program, so that the host can refuse them
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

// ReserveOutput says where the tasks are.
type ReserveOutput struct {
	Host     string `json:"host"`
	Instance string `json:"instance"`
	// Addresses are the addresses of the tasks, in the order of the request (rank order for
	// all tasks).
	Addresses []string `json:"addresses"`
	// MasterPort and JAXPort are for the coordinator that the first task of the run may host;
	// only the ports of rank 0's host are used.
	MasterPort int `json:"master_port"`
	JAXPort    int `json:"jax_port"`
	// Service says how to read the files of the run on this host, or nil if only the host can.
	Service *spec.HostService `json:"service,omitempty"`
	// Witness says how other hosts of the run ask the host about the server; nil if they cannot.
	Witness *spec.HostService `json:"witness,omitempty"`
	// Shipped says how to fetch the run's files from here, or nil if that is not possible.
	Shipped *spec.HostService `json:"shipped,omitempty"`
}
