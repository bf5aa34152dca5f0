package fleet

import "time"

// Demand is what a run needs of the fleet.
type Demand struct {
	// Groups are the tasks in the order of ranks: neighbours that need the same are one
	// group.
	Groups []Group `json:"groups"`
	// MinHosts and MaxHosts bound the number of hosts; 0 means no bound.
	MinHosts int `json:"min_hosts,omitempty"`
	MaxHosts int `json:"max_hosts,omitempty"`
	// PerHost is the number of tasks on each host, but for the last; 0: as it comes.
	PerHost int `json:"per_host,omitempty"`
	// Elastic reports whether the run has only as many of the tasks, by rank, as there are
	// on its hosts. Groups are those on MaxHosts.
	Elastic bool `json:"elastic,omitempty"`
	// JoinWait is how long an elastic run that has room on MinHosts waits for room on
	// MaxHosts.
	JoinWait time.Duration `json:"join_wait,omitempty"`
	// Select are patterns of names of hosts ([path.Match]), and Constraints what hosts
	// must meet, all of them.
	Select      []string `json:"select,omitempty"`
	Constraints []string `json:"constraints,omitempty"`
	// Spread deals the tasks out over as many hosts as possible, one by one, in place of
	// filling one host after the other.
	Spread bool `json:"spread,omitempty"`
	// Exclusive hosts have no tasks of other runs.
	Exclusive bool `json:"exclusive,omitempty"`
	// Priority is from 1, which comes first, to 5.
	Priority int `json:"priority"`
	// MaxRunTime bounds how long the run holds its room from its grant on; 0: no bound.
	MaxRunTime time.Duration `json:"max_run_time,omitempty"`
	// WaitForHosts has the run wait also where no host there is could ever meet the demand.
	WaitForHosts bool `json:"wait_for_hosts,omitempty"`
	// Prefer names the hosts that the run had in its last generation. They come first
	// where there is room.
	Prefer []string `json:"prefer,omitempty"`
}

// Group is a number of tasks with neighbouring ranks.
type Group struct {
	Tasks int `json:"tasks"`
	// Host is the only one that these tasks may be on; empty: any.
	Host string `json:"host,omitempty"`
	// GPUs is how many the tasks take on each host where there are some of them, at least
	// one for each; [AllGPUs]: all that a host has. The groups of one pool share
	// them. Where no host that the run could have has any, tasks do without.
	GPUs int `json:"gpus,omitempty"`
	Pool int `json:"pool,omitempty"`
	// Devices names these GPUs, in a list with commas; empty: any will do.
	Devices string `json:"devices,omitempty"`
	// PerTask is how many GPUs each of the tasks takes, in place of GPUs. No task does
	// without.
	PerTask int `json:"gpus_per_task,omitempty"`
}

// AllGPUs are those of a host, however many there are.
const AllGPUs = -1

// Place is what a grant gives a run on one host.
type Place struct {
	Host     string `json:"host"`
	Instance string `json:"instance"`
	// Address is the host's, see [Host.Address].
	Address string `json:"address,omitempty"`
	// Ranks are those of the tasks there, in ascending order.
	Ranks []Ranks `json:"ranks"`
	// Devices are the GPUs that the tasks have there for themselves, by name.
	Devices []string `json:"devices,omitempty"`
	// Slots is how many the host has, if it gets more tasks than that.
	Slots int `json:"slots,omitempty"`
}

// Ranks are those from First up to, but not including, End.
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
	// Tasks are those of an elastic run on the fewest of its Hosts, which is a range such
	// as 2:4. Begins is when one that has room on enough of them waits for more no longer.
	Tasks  int       `json:"tasks"`
	Hosts  string    `json:"hosts,omitempty"`
	Begins time.Time `json:"begins,omitzero"`
	// Why says what is missing, and where.
	Why string `json:"why"`
}
