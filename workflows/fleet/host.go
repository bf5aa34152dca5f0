package fleet

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Host is what a host worker says of itself when it joins.
type Host struct {
	// Name is unique in the fleet. Instance tells host workers of one name apart, and
	// Boot the boots of their machine.
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Boot     string `json:"boot,omitempty"`
	// Address is the one by which other hosts reach it.
	Address string `json:"address,omitempty"`
	Version string `json:"version,omitempty"`
	// Supervisor is the version of the supervisor, if it differs because of an upgrade under runs.
	Supervisor string `json:"supervisor,omitempty"`
	// Slots bounds the tasks on the host; 0 means no bound.
	Slots int `json:"slots,omitempty"`
	// Oversubscribe reports whether a run may have more tasks than Slots here, if it needs
	// more than all hosts that it could have together, and nobody else has any.
	Oversubscribe bool `json:"oversubscribe,omitempty"`
	CPUs          int  `json:"cpus,omitempty"`
	// Memory is in bytes.
	Memory int64             `json:"memory,omitempty"`
	GPUs   []GPU             `json:"gpus,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Role is what the host worker does, for people; empty: all of it.
	Role string `json:"role,omitempty"`
	// Store is how others have the host keep what a run ships, without its name; nil: they
	// cannot.
	Store *spec.HostService `json:"store,omitempty"`
}

// GPU is one of a host.
type GPU struct {
	// Name is what CUDA_VISIBLE_DEVICES calls it on the host; empty: its number among the
	// GPUs of the host, from 0.
	Name  string `json:"name,omitempty"`
	Model string `json:"model,omitempty"`
	// Memory is in bytes.
	Memory int64 `json:"memory,omitempty"`
}

// Run identifies a run: the execution in which it began is the same in all that go on
// with its tasks.
type Run struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// Holding is what a run holds on a host.
type Holding struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
	Tasks      int `json:"tasks"`
	// Devices are the GPUs that nobody else may use meanwhile, by name.
	Devices []string `json:"devices,omitempty"`
	// Exclusive reports whether nobody else may use the host meanwhile.
	Exclusive bool `json:"exclusive,omitempty"`
}

// HostState is what a fleet thinks of a host.
type HostState string

const (
	HostReady    HostState = "ready"
	HostCordoned HostState = "cordoned" // gets no new tasks
	HostDraining HostState = "draining" // gets no new tasks, and those it has are moved or awaited
	HostSilent   HostState = "silent"   // does not answer
)

// HostStatus is a host as the fleet sees it.
type HostStatus struct {
	Host
	State HostState `json:"state"`
	// Reason is that of a cordon or a drain, and Deadline that of a drain.
	Reason   string    `json:"reason,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Since is when the state began.
	Since time.Time `json:"since,omitzero"`
	Holds []Holding `json:"holds,omitempty"`
	// Used is the number of slots, and UsedGPUs of GPUs, that are held or granted.
	Used     int `json:"used"`
	UsedGPUs int `json:"used_gpus,omitempty"`
}
