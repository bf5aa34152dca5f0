package fleet

import "time"

// Demand describes the capacity that a run needs.
type Demand struct {
	// Groups lists the tasks in rank order. Consecutive tasks with the same needs form one group.
	Groups []Group `json:"groups"`
	// MinHosts and MaxHosts limit the number of hosts. 0 means no limit.
	MinHosts int `json:"min_hosts,omitempty"`
	MaxHosts int `json:"max_hosts,omitempty"`
	// PerHost is the number of tasks per host; the last host may have fewer. 0 means any number.
	PerHost int `json:"per_host,omitempty"`
	// Elastic reports whether the run includes only the lowest-ranked tasks that fit on its hosts.
	// If so, Groups lists the tasks for MaxHosts.
	Elastic bool `json:"elastic,omitempty"`
	// JoinWait is how long an elastic run that fits on MinHosts waits for more hosts.
	JoinWait time.Duration `json:"join_wait,omitempty"`
	// Select lists patterns of host names ([path.Match]).
	Select []string `json:"select,omitempty"`
	// Spread deals the tasks out over as many hosts as possible, one by one, instead of filling
	// one host after another.
	Spread bool `json:"spread,omitempty"`
	// Exclusive hosts do not run other runs' tasks.
	Exclusive bool `json:"exclusive,omitempty"`
	// Priority ranges from 1, the highest, to 5.
	Priority int `json:"priority"`
	// MaxRunTime limits how long the run may hold its hosts, counted from the grant. 0 means no
	// limit.
	MaxRunTime time.Duration `json:"max_run_time,omitempty"`
	// WaitForHosts makes the run wait even if the current hosts could never meet the demand.
	WaitForHosts bool `json:"wait_for_hosts,omitempty"`
	// Prefer names the hosts of the run's last generation. They are used first if they are free.
	Prefer []string `json:"prefer,omitempty"`
}

// Group is a number of tasks with consecutive ranks.
type Group struct {
	Tasks int `json:"tasks"`
	// Host is the only host for these tasks, or empty for any host.
	Host string `json:"host,omitempty"`
	// GPUs is the number of GPUs that the tasks use on each host that has GPUs, at least one per
	// task, or [AllGPUs] for all of a host's GPUs. The groups of one pool share them. If no host in
	// the run's class has GPUs, the tasks run without GPUs.
	GPUs int `json:"gpus,omitempty"`
	Pool int `json:"pool,omitempty"`
	// Devices lists the names of specific GPUs, separated by commas. Empty means any GPUs.
	Devices string `json:"devices,omitempty"`
	// PerTask, which replaces GPUs, is the number of GPUs that each task needs.
	PerTask int `json:"gpus_per_task,omitempty"`
}

// AllGPUs stands for all GPUs of a host.
const AllGPUs = -1

// Place is the part of a grant that is on one host.
type Place struct {
	Host     string `json:"host"`
	Instance string `json:"instance"`
	// Address is the host's address; see [Host.Address].
	Address string `json:"address,omitempty"`
	// Ranks are the ranks of the host's tasks, in ascending order.
	Ranks []Ranks `json:"ranks"`
	// Devices lists the names of the GPUs that are reserved for the tasks.
	Devices []string `json:"devices,omitempty"`
	// Slots is the host's number of slots if it gets more tasks than slots.
	Slots int `json:"slots,omitempty"`
}

// Ranks are the ranks from First up to, but not including, End.
type Ranks struct {
	First int `json:"first"`
	End   int `json:"end"`
}

// Waiting is a run in the fleet's queue.
type Waiting struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
	// Position counts from 1.
	Position int       `json:"position"`
	Priority int       `json:"priority"`
	Since    time.Time `json:"since"`
	// For an elastic run, Hosts is a range such as 2:4, and Tasks the number of tasks on the
	// minimum number of hosts. Begins is when a run that has enough hosts stops waiting for more.
	Tasks  int       `json:"tasks"`
	Hosts  string    `json:"hosts,omitempty"`
	Begins time.Time `json:"begins,omitzero"`
	// Why describes what is missing, and where.
	Why string `json:"why"`
}
