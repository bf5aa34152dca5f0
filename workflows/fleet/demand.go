package fleet

import "time"

// Demand describes the room that a run needs.
type Demand struct {
	// Groups are the tasks in the order of ranks: neighbours that need the same are one
	// group.
	Groups []Group `json:"groups"`
	// MinHosts and MaxHosts bound the number of hosts; 0 means no bound.
	MinHosts int `json:"min_hosts,omitempty"`
	MaxHosts int `json:"max_hosts,omitempty"`
	// PerHost is the number of tasks on each host; the last may have fewer. 0 sets no number.
	PerHost int `json:"per_host,omitempty"`
	// Elastic reports whether the run has only as many of the tasks, by rank, as its hosts have
	// room for. Groups are the tasks on MaxHosts.
	Elastic bool `json:"elastic,omitempty"`
	// JoinWait is the time for which an elastic run that has room on MinHosts waits for room on
	// more hosts.
	JoinWait time.Duration `json:"join_wait,omitempty"`
	// Select are patterns of names of hosts ([path.Match]), and Constraints what hosts
	// must meet, all of them.
	Select      []string `json:"select,omitempty"`
	Constraints []string `json:"constraints,omitempty"`
	// Spread deals the tasks out over as many hosts as possible, one by one, instead of filling
	// one host after the other.
	Spread bool `json:"spread,omitempty"`
	// Exclusive hosts have no tasks of other runs.
	Exclusive bool `json:"exclusive,omitempty"`
	// Priority is from 1, which comes first, to 5.
	Priority int `json:"priority"`
	// MaxRunTime is the longest time that the run may hold its room, from its grant on. 0 means
	// no limit.
	MaxRunTime time.Duration `json:"max_run_time,omitempty"`
	// Notice is the time from the notice of a preemption to the stop of the run. Firm reports
	// whether the run must not be preempted.
	Notice time.Duration `json:"notice,omitempty"`
	Firm   bool          `json:"firm,omitempty"`
	// WaitForHosts makes the run wait even if no present host could ever meet the demand.
	WaitForHosts bool `json:"wait_for_hosts,omitempty"`
	// Prefer names the hosts that the run had in its last generation. They come first if they
	// have room.
	Prefer []string `json:"prefer,omitempty"`
}

// Group is a number of tasks with neighbouring ranks.
type Group struct {
	Tasks int `json:"tasks"`
	// Host is the only host for these tasks. If it is empty, any host will do.
	Host string `json:"host,omitempty"`
	// GPUs is the number of GPUs that the tasks take on each host that has some, at least one
	// for each task, or [AllGPUs] for all GPUs of a host. The groups of one pool share them. If
	// no host in the run's class has GPUs, the tasks run without.
	GPUs int `json:"gpus,omitempty"`
	Pool int `json:"pool,omitempty"`
	// Devices names these GPUs, in a list with commas. If it is empty, any GPUs will do.
	Devices string `json:"devices,omitempty"`
	// PerTask is the number of GPUs that each of the tasks takes, instead of GPUs. No task runs
	// without.
	PerTask int `json:"gpus_per_task,omitempty"`
}

// AllGPUs stands for all GPUs of a host.
const AllGPUs = -1

// Place is the room that a grant gives a run on one host.
type Place struct {
	Host     string `json:"host"`
	Instance string `json:"instance"`
	// Address is the host's, see [Host.Address].
	Address string `json:"address,omitempty"`
	// Ranks are the ranks of the tasks there, in ascending order.
	Ranks []Ranks `json:"ranks"`
	// Devices are the GPUs that the tasks have there for themselves, by name.
	Devices []string `json:"devices,omitempty"`
	// Slots is the number of slots of the host, if it gets more tasks than that.
	Slots int `json:"slots,omitempty"`
}

// Ranks are the ranks from First up to, but not including, End.
type Ranks struct {
	First int `json:"first"`
	End   int `json:"end"`
}

// Waiting is a run in the queue of the fleet.
type Waiting struct {
	Run        Run `json:"run"`
	Generation int `json:"generation,omitempty"`
	// Position is from 1.
	Position int       `json:"position"`
	Priority int       `json:"priority"`
	Since    time.Time `json:"since"`
	// Tasks is the number of tasks of an elastic run on the fewest of its Hosts, which is a
	// range such as 2:4. Begins is the time at which a run with room on enough hosts stops
	// waiting for more.
	Tasks  int       `json:"tasks"`
	Hosts  string    `json:"hosts,omitempty"`
	Begins time.Time `json:"begins,omitzero"`
	// Why says what is missing, and where.
	Why string `json:"why"`
	// Makers are the runs that have notice to make room for the run.
	Makers []Preemption `json:"makers,omitempty"`
}
