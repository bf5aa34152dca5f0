package spec

// RunSpec says what to run: the tasks of a cluster, the command of each, and
// the rules by which the run ends. The zero value of every optional field
// means "not given"; [RunSpec.WithDefaults] fills those in.
type RunSpec struct {
	// Name is the first part of a run ID made for this spec.
	Name string `json:"name,omitempty"`
	// Command is the argv of every task that has no command of its own. No
	// shell is involved.
	Command []string `json:"command,omitempty"`
	// Tasks lists the groups of tasks of the cluster. Their order is rank order.
	Tasks []TaskGroup `json:"tasks"`
	// Dir is the working directory of the processes. It must exist on each
	// host. None means the host worker's own.
	Dir string `json:"dir,omitempty"`
	// Env is laid over the host worker's own, cleaned environment.
	Env map[string]string `json:"env,omitempty"`
	// RPCLayer goes into TF_CONFIG. Default "grpc".
	RPCLayer string `json:"rpc_layer,omitempty"`
	// DependenceOnChief: the chief's final exit ends the run. Default true;
	// without effect where there is no chief.
	DependenceOnChief *bool `json:"dependence_on_chief,omitempty"`
	// ChiefGrace is how long the other tasks have, together, to end by
	// themselves after the chief has. Default 3s.
	ChiefGrace *Duration `json:"chief_grace,omitempty"`
	// OnFailure says what a task's final failure does to the others. Default stop.
	OnFailure OnFailure `json:"on_failure,omitempty"`
	// AutoRestart starts a failed or terminated task again.
	AutoRestart bool `json:"auto_restart,omitempty"`
	// RestartScope says what is started again: the task, or the whole group.
	// Default task. With group nothing else is needed: AutoRestart is implied.
	RestartScope RestartScope `json:"restart_scope,omitempty"`
	// MaxRestarts bounds the restarts of one task (scope task) or of the group
	// (scope group) that failures cause. None means no limit.
	MaxRestarts *int `json:"max_restarts,omitempty"`
	// MaxRunTime is a hard limit on the whole run, from its start, queueing
	// excluded: everything left is killed. None means no limit.
	MaxRunTime *Duration `json:"max_run_time,omitempty"`
	// Timeout stops the run with the stop signal first, so that programs can
	// still say where they were. 0 stops it at once. None means no limit.
	Timeout *Duration `json:"timeout,omitempty"`
	// PlacementTimeout is how long a host may take to accept its tasks before
	// the run fails with a PlacementError. Default 1m.
	PlacementTimeout *Duration `json:"placement_timeout,omitempty"`
	// Barriers says who releases the barriers of the run. Default server.
	Barriers Barriers `json:"barriers,omitempty"`
	// Stop says how a process is asked to end, and for how long.
	Stop Stop `json:"stop,omitzero"`
	// OnDisconnect says what hosts do with the processes while they hear nothing of
	// the Temporal server.
	OnDisconnect OnDisconnect `json:"on_disconnect,omitempty"`

	// StopTogether says how the tasks stop together, each by itself, when one of
	// them or an operator asks for that.
	StopTogether StopTogether `json:"stop_together,omitzero"`
	// Closures are the settings of the queue of the run's closures.
	Closures Closures `json:"closures,omitzero"`
	// Logs says where output goes.
	Logs Logs `json:"logs,omitzero"`
	// ReturnOutput puts the last lines of the output into the result.
	ReturnOutput bool `json:"return_output,omitempty"`
	// EnvProfiles names the sets of variables that processes get. Default all.
	EnvProfiles []EnvProfile `json:"env_profiles,omitzero"`
	// Devices are the GPUs of each host that its tasks share out among
	// themselves, one after the other in the order of local ranks. None given:
	// every task sees what the host worker sees.
	Devices Resources `json:"devices,omitzero"`
	// CPUs are the processors of each host that its tasks share out among
	// themselves, in blocks. None given: nothing is bound.
	CPUs Resources `json:"cpus,omitzero"`
}

// TaskGroup is the tasks of one type. It has either a count, and the tasks are
// placed together on one host, or addresses, and each task runs on the host
// its address names.
type TaskGroup struct {
	// Type is the task type, such as chief, worker, ps or evaluator.
	Type string `json:"type"`
	// Count is the number of tasks. Default 1 where there are no addresses.
	Count *int `json:"count,omitempty"`
	// Addresses pins one task to each "host:port" or "host".
	Addresses []string `json:"addresses,omitempty"`
	// Command replaces the run's command for this type.
	Command []string `json:"command,omitempty"`
	// Args are appended to the command.
	Args []string `json:"args,omitempty"`
	// Dir replaces the run's working directory.
	Dir string `json:"dir,omitempty"`
	// Env is laid over the run's.
	Env map[string]string `json:"env,omitempty"`
	// Overrides change single tasks, by index ("0", "1", …).
	Overrides map[string]Override `json:"overrides,omitempty"`
	// Stop replaces what it has of the run's.
	Stop Stop `json:"stop,omitzero"`
	// Logs replaces what it has of the run's.
	Logs GroupLogs `json:"logs,omitzero"`
	// Devices and CPUs replace the run's: these tasks share them out among
	// themselves. An empty list: none.
	Devices Resources `json:"devices,omitzero"`
	CPUs    Resources `json:"cpus,omitzero"`
}

// GroupLogs says where the output of the tasks of one type goes. The masks are
// those of [Logs], but count the tasks of the type, by index.
type GroupLogs struct {
	Redirects string `json:"redirects,omitempty"`
	Tee       string `json:"tee,omitempty"`
}

// Override changes one task of a group.
type Override struct {
	// Command replaces the group's command.
	Command []string `json:"command,omitempty"`
	// Args replace the group's args; an empty list takes them away.
	Args []string `json:"args,omitzero"`
	// Dir replaces the group's working directory.
	Dir string `json:"dir,omitempty"`
	// Env is laid over the group's.
	Env map[string]string `json:"env,omitempty"`
}

// Stop says how a process is asked to end.
type Stop struct {
	// Signal is sent to the process group first. Default SIGTERM.
	Signal string `json:"signal,omitempty"`
	// Grace is the time until SIGKILL. Default 30s.
	Grace *Duration `json:"grace,omitempty"`
}

// Logs says where the output of the processes goes.
type Logs struct {
	// Dir is the root of the log directories on each host. It is made when
	// missing. Default: below the host worker's state directory. /dev/null: no
	// files at all, and with them neither results nor error files; what
	// was to be shown goes straight to the console.
	Dir string `json:"dir,omitempty"`
	// Redirects says which streams go to files: "0" none, "1" stdout,
	// "2" stderr, "3" both; or by rank, "0:3,1:0". Default "3". A stream that is
	// neither redirected nor teed goes straight to the console, without a
	// prefix, and nowhere on a host without one.
	Redirects string `json:"redirects,omitempty"`
	// Tee says which streams go to files and to the console. Same syntax.
	// Default "3".
	Tee string `json:"tee,omitempty"`
	// LocalRanksFilter limits the console to these local ranks. Empty: all.
	// What others write and is not redirected goes nowhere.
	LocalRanksFilter []int `json:"local_ranks_filter,omitzero"`
	// Filter limits the console to these tasks ("worker-0") and types ("ps"), in
	// the same way. Empty: all.
	Filter []string `json:"filter,omitempty"`
	// Prefix is a template for the start of each console line. Default
	// "[{{.Type}}-{{.Index}}]:", padded to 14 columns and followed by a space.
	Prefix string `json:"prefix,omitempty"`
	// Timestamps puts the time of day in front of each console line.
	Timestamps bool `json:"timestamps,omitempty"`
	// DuplicateStdoutFilters and DuplicateStderrFilters have each host collect
	// the lines that contain one of these texts, of all its tasks, in one file
	// more: filtered_stdout.log and filtered_stderr.log, with prefixes.
	DuplicateStdoutFilters []string `json:"duplicate_stdout_filters,omitempty"`
	DuplicateStderrFilters []string `json:"duplicate_stderr_filters,omitempty"`
}

// NullDir is the log directory that stands for none.
const NullDir = "/dev/null"

// OnFailure says what a task's final failure does to the others.
type OnFailure string

// The values of [OnFailure].
const (
	// OnFailureStop stops the other tasks.
	OnFailureStop OnFailure = "stop"
	// OnFailureContinue lets the other tasks end by themselves.
	OnFailureContinue OnFailure = "continue"
)

// RestartScope says what a restart starts again.
type RestartScope string

// The values of [RestartScope].
const (
	RestartScopeTask  RestartScope = "task"
	RestartScopeGroup RestartScope = "group"
)

// Barriers says who releases the barriers at which the tasks of a run meet.
type Barriers string

// The values of [Barriers].
const (
	// BarriersServer has the Temporal server release them, wherever the tasks are,
	// unless an arrival asks for a local one.
	BarriersServer Barriers = "server"
	// BarriersLocal has the host do it alone, in microseconds, also while the server
	// is away. All tasks have to be on one host.
	BarriersLocal Barriers = "local"
)

// EnvProfile names a set of environment variables.
type EnvProfile string

// The values of [EnvProfile].
const (
	EnvTensorFlow EnvProfile = "tensorflow"
	EnvTorch      EnvProfile = "torch"
	EnvJAX        EnvProfile = "jax"
)
