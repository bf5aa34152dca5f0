package spec

// RunSpec describes a run: a cluster's tasks, the command of each, and the rules for ending the
// run. [Reference] documents every field of it and of the types below. The zero value of an
// optional field means "not given"; [RunSpec.WithDefaults] fills in the defaults.
type RunSpec struct {
	// The first part of the run IDs of this spec.
	Name string `json:"name,omitempty"`
	// The argv of every task without its own command. No shell is involved.
	Command []string `json:"command,omitempty"`
	// The cluster's task groups. Their order determines the ranks.
	Tasks []TaskGroup `json:"tasks"`
	// The processes' absolute working directory. It must exist on each host. Default: the host
	// worker's directory. With ship, it can be a directory within the shipped one, such as src; the
	// default is the shipped directory itself.
	Dir string `json:"dir,omitempty"`
	// The directory that the run ships. Its files are packed when the run starts, and each host
	// unpacks them into a private directory, in which the tasks run. A plain string is dir. .git and
	// files that .gitignore matches are not shipped.
	Ship Ship `json:"ship,omitzero"`
	// Whether starting the run records the git work tree in which it is started: the commit, the
	// branch, and the names and digests of modified files. show and diff print them.
	RecordSource *bool `json:"record_source,omitempty"`
	// Environment variables, in addition to the host worker's cleaned environment.
	Env Env `json:"env,omitempty"`
	// Variables of the host worker that the processes do not inherit: names, or prefixes of names
	// followed by *. Variables in env are not affected.
	UnsetEnv []string `json:"unset_env,omitempty"`
	// The RPC layer in TF_CONFIG.
	RPCLayer string `json:"rpc_layer,omitempty"`
	// Whether the chief's final exit ends the run. Without a chief, it has no effect.
	DependenceOnChief *bool `json:"dependence_on_chief,omitempty"`
	// How long the other tasks, together, may take to exit after the chief has exited.
	ChiefGrace *Duration `json:"chief_grace,omitempty"`
	// What a task's final failure does to the other tasks: stop them, or let them continue.
	OnFailure OnFailure `json:"on_failure,omitempty"`
	// Whether tasks restart if they failed, were terminated or were stopped because they were
	// silent. If a host is lost, a run on several hosts is also placed again without it, unless
	// on_failure is continue.
	AutoRestart bool `json:"auto_restart,omitempty"`
	// What restarts after a failure: the task, or the whole group. group implies auto_restart.
	RestartScope RestartScope `json:"restart_scope,omitempty"`
	// The maximum number of restarts after failures, of each task (scope task) or of the group
	// (scope group). Default: no limit. Requires auto_restart, restart_scope: group, or a requeue_on
	// with timeout or host-lost; in that case, it also limits how often the run returns to the
	// queue.
	MaxRestarts *int `json:"max_restarts,omitempty"`
	// The number of consecutive failures with the same error after which the task or the group is
	// not restarted. A step beyond the latest one resets the count. In a group, the failures must be
	// of the same task, or of several tasks together. Errors are the same if the program printed or
	// reported them at the same place in the code, with messages that differ only in numbers. Errors
	// about a lost peer do not count, nor do failures of processes that report no steps and have
	// lived for a minute. 0 disables this.
	GiveUpOnSameError *int `json:"give_up_on_same_error,omitempty"`
	// How a task is judged if it exits with 0 although the kernel killed one of its processes to
	// free memory: report mentions it in the report; fail makes it a failure, with the cause oom. If
	// a task does not have its own version 2 cgroup with a memory controller, the kills in the host
	// worker's cgroup count, or else all those on its host. Default: report.
	OnOOM OnOOM `json:"on_oom,omitempty"`
	// The time after which the run is killed, including everything left of it. It counts from the
	// start, without time in the queue. Default: no limit.
	MaxRunTime *Duration `json:"max_run_time,omitempty"`
	// The time after which the run is stopped. Tasks get the stop signal first, so that programs can
	// still report. 0s stops the run immediately. Default: no limit.
	Timeout *Duration `json:"timeout,omitempty"`
	// How long the run waits for hosts before it fails with a PlacementError. By default, a
	// submitted run waits without limit.
	PlacementTimeout *Duration `json:"placement_timeout,omitempty"`
	// The IDs of the runs that must end before this run starts. The run waits for the latest run
	// with each ID at the time it is started. It is skipped if one of them ends in another way.
	After []After `json:"after,omitempty"`
	// The priority among pending runs, from 1, the highest, to 5. Runs of equal priority are served
	// in the order in which they entered the queue.
	Priority *int `json:"priority,omitempty"`
	// The signal that the tasks get with every notice, from a draining host or a person.
	// Default: none; they can ask for the notice.
	NoticeSignal string `json:"notice_signal,omitempty"`
	// What makes the run pending again, with its age: preemption, by a draining host; timeout, by
	// timeout or max_run_time; host-lost. max_restarts bounds the last two. With an empty list the
	// run finishes.
	RequeueOn []RequeueOn `json:"requeue_on,omitzero"`
	// On which hosts, and on how many, the tasks are placed. A plain number is the count. Default:
	// any hosts with enough free capacity, and as few as possible.
	Hosts Hosts `json:"hosts,omitzero"`
	// How an elastic run, with a range as hosts.count, gets its hosts.
	Elastic Elastic `json:"elastic,omitzero"`
	// What releases the tasks' barriers: the Temporal server, for tasks on any hosts, or with local
	// their host, in microseconds. local requires all tasks on one host.
	Barriers Barriers `json:"barriers,omitempty"`
	// How processes are stopped, and how much time they get.
	Stop Stop `json:"stop,omitzero"`
	// What a host does with its processes when it cannot reach the Temporal server: keep lets them
	// continue, and no host is ever given up; {stop_after: TIME} stops them after that time, so that
	// they can restart elsewhere. With {stop_after: TIME, outage: TIME}, a host asks the run's other
	// hosts: it stops its processes after stop_after if it reaches none of them, and after outage if
	// none of them reaches the server. Hosts reach each other if their workers serve output
	// (--listen). Default: keep on one host, {stop_after: 15s, outage: 10m} on hosts that reach each
	// other (more than 15s with over 120 tasks), {stop_after: 2m} on others, and on one host if
	// requeue_on includes host-lost.
	OnDisconnect OnDisconnect `json:"on_disconnect,omitempty"`
	// The time without output, progress and processor time after which a task is reported as silent.
	// At least 30s; with auto, 5 times its process's longest pause so far, and at least 10m. Only
	// output that goes to files counts, and using less than a hundredth of a processor counts as not
	// working. Default: 10m for several tasks; silence is not watched in a run of one task, or with
	// never.
	Silence Silence `json:"silence,omitempty"`
	// Whether only output and progress count as signs of work, and not processor time. Processes
	// that wait for NCCL or poll for messages in MPI use a whole processor. Set it for programs that
	// regularly print or report progress.
	SilenceIgnoresCPU bool `json:"silence_ignores_cpu,omitempty"`
	// What happens when all of the run's tasks on a host are silent: report saves the stacks of all
	// tasks and shows which ranks differ; stop does so and ends the silent tasks as failures with
	// the cause silence, which restart like others. Default: report for several tasks; a single
	// task's silence is only shown.
	OnSilence OnSilence `json:"on_silence,omitempty"`
	// Whether stacks show the lines of Python programs. If so, PYTHONPATH starts with a directory
	// with a sitecustomize module that registers faulthandler for a real-time signal, and then runs
	// the program's own sitecustomize.
	PythonStacks *bool `json:"python_stacks,omitempty"`
	// The webhook to notify when the run has ended, and when on_silence finds silent tasks. See
	// `clusterrun help monitoring`.
	Notify Notification `json:"notify,omitzero"`
	// How the tasks stop themselves gracefully when a task or an operator requests it.
	StopTogether StopTogether `json:"stop_together,omitzero"`
	// The settings of the run's closure queue.
	Closures Closures `json:"closures,omitzero"`
	// Where the processes' output goes.
	Logs Logs `json:"logs,omitzero"`
	// Whether the result includes the last lines of output.
	ReturnOutput bool `json:"return_output,omitempty"`
	// The sets of environment variables that processes receive. Default: tensorflow, torch and jax.
	// An empty list means none. With mpi, the processes are ranks of MPICH, Intel MPI or MVAPICH.
	EnvProfiles []EnvProfile `json:"env_profiles,omitzero"`
	// The GPUs of each host to divide among its tasks, in CUDA_VISIBLE_DEVICES: auto for all, or a
	// list. Default: every task sees all of them.
	Devices Resources `json:"devices,omitzero"`
	// How many GPUs each task gets for itself, in CUDA_VISIBLE_DEVICES; it replaces devices. Runs
	// that share a host get different GPUs.
	GPUsPerTask *int `json:"gpus_per_task,omitempty"`
	// The CPUs of each host to divide among its tasks, in blocks: auto for all, or a list. Default:
	// tasks are not bound.
	CPUs Resources `json:"cpus,omitzero"`
	// Limits what each task, including all its processes, uses on its host. A host that cannot
	// enforce a limit refuses the run before anything starts.
	Limits Limits `json:"limits,omitzero"`
	// Whether files in /dev/shm left by the run's earlier processes are removed before a process
	// restarts. Only files that its user has created there since its first process started, and that
	// no process has open, are removed, and only while no task of any run is alive on the host.
	// Leave it off if the run keeps checkpoints there.
	CleanShm bool `json:"clean_shm,omitempty"`
	// The signature for hosts with a policy, written by run and submit.
	Signature *Signature `json:"signature,omitempty"`
}

// TaskGroup describes the tasks of one type. It has either a count, and its tasks go to any hosts
// with free slots, or addresses, and each task runs on the host in its address.
type TaskGroup struct {
	// The task type, such as chief, worker, ps or evaluator.
	Type string `json:"type"`
	// The number of tasks. By default, they are placed on as few hosts as possible; hosts changes
	// that. Default 1. Cannot be combined with addresses.
	Count *int `json:"count,omitempty"`
	// Pins one task to each "host:port" or "host". The host is the name of a host worker;
	// localhost, 127.0.0.1 and [::1] mean the host on which the run is started.
	Addresses []string `json:"addresses,omitempty"`
	// Replaces the run's command for this type.
	Command []string `json:"command,omitempty"`
	// Arguments appended to the command.
	Args []string `json:"args,omitempty"`
	// Replaces the run's working directory.
	Dir string `json:"dir,omitempty"`
	// Environment variables. They override the run's.
	Env Env `json:"env,omitempty"`
	// Changes to individual tasks, by index ("0", "1", …).
	Overrides map[string]Override `json:"overrides,omitempty"`
	// Overrides fields of the run's stop.
	Stop Stop `json:"stop,omitzero"`
	// Overrides fields of the run's logs.
	Logs GroupLogs `json:"logs,omitzero"`
	// Replaces the run's devices for these tasks and is divided among them. An empty list means
	// none.
	Devices Resources `json:"devices,omitzero"`
	// Replaces the run's gpus_per_task and devices.
	GPUsPerTask *int `json:"gpus_per_task,omitempty"`
	// Replaces the run's cpus. An empty list means that tasks are not bound.
	CPUs Resources `json:"cpus,omitzero"`
	// Overrides fields of the run's limits.
	Limits Limits `json:"limits,omitzero"`
}

// Limits restrict each task's use of its host, for all its processes together.
type Limits struct {
	Memory string `json:"memory,omitempty"`
	CPUs   *int   `json:"cpus,omitempty"`
	PIDs   *int   `json:"pids,omitempty"`
	NoFile *int   `json:"nofile,omitempty"`
	Core   string `json:"core,omitempty"`
}

// GroupLogs describes where one type's output goes. Its masks are like the masks of [Logs], but by
// index within the type.
type GroupLogs struct {
	Redirects string `json:"redirects,omitempty"`
	Tee       string `json:"tee,omitempty"`
}

// Override changes one task of a group.
type Override struct {
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitzero"`
	Dir     string   `json:"dir,omitempty"`
	Env     Env      `json:"env,omitempty"`
}

// Stop describes how a process is asked to exit.
type Stop struct {
	Signal string    `json:"signal,omitempty"`
	Grace  *Duration `json:"grace,omitempty"`
	Scope  StopScope `json:"scope,omitempty"`
	// ErrorGrace is part of Grace.
	ErrorGrace *Duration `json:"error_grace,omitempty"`
}

// StopScope selects the processes that the [Stop] signal reaches first.
type StopScope string

const (
	// StopScopeProgram reaches only the program, which may need its helpers to save its work.
	// They get the signal once it exits or is about to run out of time.
	StopScopeProgram StopScope = "program"
	// StopScopeGroup reaches the whole process group.
	StopScopeGroup StopScope = "group"
)

var stopScopes = []StopScope{StopScopeProgram, StopScopeGroup}

// Logs describes where processes' output goes. With the directory [NullDir], shown output goes
// directly to the console, which a host may not have. Output without a file is dropped if the
// filters keep it off the console.
type Logs struct {
	Dir                    string   `json:"dir,omitempty"`
	Group                  string   `json:"group,omitempty"`
	Redirects              string   `json:"redirects,omitempty"`
	Tee                    string   `json:"tee,omitempty"`
	LocalRanksFilter       []int    `json:"local_ranks_filter,omitzero"`
	Filter                 []string `json:"filter,omitempty"`
	Prefix                 *string  `json:"prefix,omitempty"`
	Timestamps             bool     `json:"timestamps,omitempty"`
	DuplicateStdoutFilters []string `json:"duplicate_stdout_filters,omitempty"`
	DuplicateStderrFilters []string `json:"duplicate_stderr_filters,omitempty"`
	Quota                  string   `json:"quota,omitempty"`
	OnFull                 OnFull   `json:"on_full,omitempty"`
}

// NullDir is the log directory that means none.
const NullDir = "/dev/null"

// OnFull handles output beyond the quota.
type OnFull string

// The values of [OnFull].
const (
	// OnFullFail fails the task that wrote the most.
	OnFullFail OnFull = "fail"
	// OnFullDrop drops the output, with a note in the file and in the result.
	OnFullDrop OnFull = "drop"
)

// OnOOM handles a task that exits with 0 although the kernel killed some of its processes to free
// memory.
type OnOOM string

// The values of [OnOOM].
const (
	// OnOOMReport mentions it in the report.
	OnOOMReport OnOOM = "report"
	// OnOOMFail makes the task fail.
	OnOOMFail OnOOM = "fail"
)

// OnSilence handles silent tasks.
type OnSilence string

// The values of [OnSilence].
const (
	// OnSilenceReport captures all tasks' stacks, and shows the findings.
	OnSilenceReport OnSilence = "report"
	// OnSilenceStop also stops the silent tasks, which count as failed.
	OnSilenceStop OnSilence = "stop"
)

// OnFailure handles the remaining tasks after a task's final failure.
type OnFailure string

// The values of [OnFailure].
const (
	// OnFailureStop stops the remaining tasks.
	OnFailureStop OnFailure = "stop"
	// OnFailureContinue lets the remaining tasks finish.
	OnFailureContinue OnFailure = "continue"
)

// RestartScope is the part of a run that is restarted.
type RestartScope string

// The values of [RestartScope].
const (
	RestartScopeTask  RestartScope = "task"
	RestartScopeGroup RestartScope = "group"
)

// Barriers is whether hosts or the server release a run's barriers.
type Barriers string

// The values of [Barriers].
const (
	// BarriersServer makes the Temporal server release them, even across hosts, unless an arrival
	// requests a local one.
	BarriersServer Barriers = "server"
	// BarriersLocal makes the host release them, in microseconds, even while the server is down.
	// All tasks must be on one host.
	BarriersLocal Barriers = "local"
)

// EnvProfile names a set of environment variables.
type EnvProfile string

// The values of [EnvProfile].
const (
	EnvTensorFlow EnvProfile = "tensorflow"
	EnvTorch      EnvProfile = "torch"
	EnvJAX        EnvProfile = "jax"
	// EnvMPI starts each process through `clusterrun task mpi`, so that MPICH-family programs are
	// the ranks of one world. It is not a default profile.
	EnvMPI EnvProfile = "mpi"
)

// Signature is an SSH signature of a run, or of a request to one. It must be made last: any later
// change invalidates it.
type Signature struct {
	// Expires is the RFC 3339 time after which hosts no longer accept the signed run or request
	// for the first time.
	Expires string `json:"expires"`
	// Size is the number of signed tasks, since a generation of an elastic run may have fewer. 0
	// means the spec's number of tasks.
	Size int `json:"size,omitempty"`
	// SSH is the signature in ssh-keygen(1)'s format.
	SSH string `json:"ssh"`
}

// AsSigned returns the spec that a signature covers. It includes defaults and all tasks of an
// elastic run, even if this generation runs fewer, but not the signature.
func (s *RunSpec) AsSigned() *RunSpec {
	signed := s.WithDefaults()
	signature := signed.Signature
	signed.Signature = nil
	if signature == nil || !signed.IsElastic() || len(signed.Tasks) == 0 || signature.Size <= signed.total() {
		return signed
	}
	return signed.resized(signature.Size)
}
