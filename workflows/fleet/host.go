package fleet

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Host describes a host worker that joins.
type Host struct {
	// Name is unique in the fleet. Instance distinguishes host workers with the same name, and Boot
	// identifies the machine's current boot.
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Boot     string `json:"boot,omitempty"`
	// Address is the host's address for other hosts.
	Address string `json:"address,omitempty"`
	Version string `json:"version,omitempty"`
	// Supervisor is the supervisor's version, if it differs because of an upgrade during runs.
	Supervisor string `json:"supervisor,omitempty"`
	// Slots limits the tasks on the host; 0 means no limit.
	Slots int `json:"slots,omitempty"`
	// Oversubscribe reports whether a run may place more tasks than Slots on the host, provided
	// that it needs more slots than its class has in total, and is the host's only run.
	Oversubscribe bool `json:"oversubscribe,omitempty"`
	CPUs          int  `json:"cpus,omitempty"`
	// Memory is in bytes.
	Memory int64 `json:"memory,omitempty"`
	GPUs   []GPU `json:"gpus,omitempty"`
	// Role describes the work that the host worker accepts, for display only. Empty means all.
	Role string `json:"role,omitempty"`
	// Checks lists the host's checks by name, and Failing the failed ones.
	Checks  []string      `json:"checks,omitempty"`
	Failing []FailedCheck `json:"failing,omitempty"`
	// Store describes how to make the host store a run's files, without the host's name. It is nil
	// if the host cannot store files.
	Store *spec.HostService `json:"store,omitempty"`
}

// GPU is a host's GPU.
type GPU struct {
	// Name is the GPU's name in CUDA_VISIBLE_DEVICES on the host. If it is empty, the name is the
	// GPU's number on the host, from 0.
	Name  string `json:"name,omitempty"`
	Model string `json:"model,omitempty"`
}

// Run identifies a run by its first execution, which is the same in all executions that continue
// it.
type Run struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// Holding is the capacity that a run holds on a host.
type Holding struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
	Tasks      int `json:"tasks"`
	// Devices lists the names of the GPUs that no other run may use during the holding.
	Devices []string `json:"devices,omitempty"`
	// Exclusive reports whether no other run may use the host during the holding.
	Exclusive bool `json:"exclusive,omitempty"`
	// Stuck names processes that survive SIGKILL. The host keeps the holding until they are gone,
	// even if the run has finished.
	Stuck string `json:"stuck,omitempty"`
}

// HostState is a host's state in a fleet.
type HostState string

const (
	HostReady    HostState = "ready"
	HostCordoned HostState = "cordoned" // gets no new tasks
	HostDraining HostState = "draining" // gets no new tasks; its present tasks are to end or move
	HostSilent   HostState = "silent"   // does not answer
)

// HostStatus is a host's status in the fleet.
type HostStatus struct {
	Host
	State HostState `json:"state"`
	// CordonedBy explains why the host does not get new tasks.
	CordonedBy CordonedBy `json:"cordoned_by,omitempty"`
	// Reason is set for a cordon or a drain, and Deadline for a drain.
	Reason   string    `json:"reason,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Since is when the host entered its state.
	Since time.Time `json:"since,omitzero"`
	Holds []Holding `json:"holds,omitempty"`
	// Used and UsedGPUs count the slots and GPUs that are held or granted.
	Used     int `json:"used"`
	UsedGPUs int `json:"used_gpus,omitempty"`
}

// status returns the host's public status.
func (h *host) status() HostStatus {
	s := HostStatus{Host: h.Host, State: h.state(), Deadline: h.Cordon.Deadline, Since: h.Since}
	var since time.Time
	if s.CordonedBy, s.Reason, since = h.cordonedBy(); !h.Silent && !since.IsZero() {
		s.Since = since
	}
	h.each(func(r *run, share room, alone bool) {
		s.Used += share.slots
		s.UsedGPUs += share.gpus
		s.Holds = append(s.Holds, Holding{Run: r.ID, Generation: r.Generation, Tasks: share.slots, Devices: h.devicesOf(r), Exclusive: alone, Stuck: h.stuckOf(r)})
	})
	slices.SortFunc(s.Holds, func(a, b Holding) int { return compareRuns(a.Run, b.Run) })
	return s
}
