package spec

// RunSpec describes a run: a cluster's tasks, the command of each, and the rules for ending the
// run. [Reference] documents every field of it and of the types below. The zero value of an
// optional field means "not given"; [RunSpec.WithDefaults] fills in the defaults.
type RunSpec struct {
	// The first part of the IDs of runs of this spec.
	Name string `json:"name,omitempty"`
	// The argv of every task that has no command of its own. No shell is involved.
	Command []string `json:"command,omitempty"`
	// The groups of tasks of the cluster. Their order is rank order.
	Tasks []TaskGroup `json:"tasks"`
	// Absolute working directory of the processes; it must exist on each host. Default: the
	// directory of the host worker. With ship it may be a directory below the shipped one, such as
	// src; the default is the shipped directory.
	Dir string `json:"dir,omitempty"`
	// The directory that the run ships: its files are packed when the run starts, and each host
	// unpacks them into a private directory, in which the tasks run. A plain text is dir. .git and
	// what .gitignore names are left out.
	Ship Ship `json:"ship,omitzero"`
	// Whether the start of the run records the git work tree that it is started from: the commit,
	// the branch, and the names and digests of the files that differ from it. show and diff have
	// them.
	RecordSource *bool `json:"record_source,omitempty"`
	// Environment variables, in addition to the cleaned environment of the host worker.
	Env Env `json:"env,omitempty"`
	// Variables of the host worker that the processes do not get: names, or the beginning of names
	// followed by *. Variables in env are not affected.
	UnsetEnv []string `json:"unset_env,omitempty"`
	// The RPC layer in TF_CONFIG.
	RPCLayer string `json:"rpc_layer,omitempty"`
	// Whether the final exit of the chief ends the run. Without a chief it has no effect.
	DependenceOnChief *bool `json:"dependence_on_chief,omitempty"`
	// How long the other tasks, together, may take to end by themselves after the chief has ended.
	ChiefGrace *Duration `json:"chief_grace,omitempty"`
	// The effect of the final failure of a task on the others: stop them, or let them continue.
	OnFailure OnFailure `json:"on_failure,omitempty"`
	// Whether tasks that failed, were terminated or were stopped for their silence restart. A run
	// on several hosts is also placed again without a host that is lost, unless on_failure is
	// continue.
	AutoRestart bool `json:"auto_restart,omitempty"`
	// What restarts after a failure: the task, or the whole group. group implies auto_restart.
	RestartScope RestartScope `json:"restart_scope,omitempty"`
	// The most restarts after failures, of each task (scope task) or of the group (scope group).
	// Default: no limit. Needs auto_restart, restart_scope: group, or a requeue_on with timeout or
	// host-lost, whose returns to the queue it bounds as well.
	MaxRestarts *int `json:"max_restarts,omitempty"`
	// The number of failures in a row with the same error, after which the task or the group is
	// not restarted, unless a further step was reported in between. In a group they must be of the
	// same task, or of several at once. Errors are the same if the program printed or reported
	// them at the same place, with the same text except for numbers. Errors about a lost peer do
	// not count, nor do failures of processes that report no steps and have lived for a minute.
	// With 0 they never end it.
	GiveUpOnSameError *int `json:"give_up_on_same_error,omitempty"`
	// How a task ends that exits with 0 although the kernel has killed one of its processes to
	// free memory: report says so in the report; fail makes it a failure, with the cause oom. If a
	// task has no version 2 cgroup with a memory controller, all processes in the cgroup of its
	// host worker count, or all on its host. Default: report.
	OnOOM OnOOM `json:"on_oom,omitempty"`
	// The time after which everything that is left of the run is killed, from its start and
	// without the time in the queue. Default: no limit.
	MaxRunTime *Duration `json:"max_run_time,omitempty"`
	// The time after which the run is stopped, with the stop signal first, so that programs can
	// still report. 0s: at once. Default: no limit.
	Timeout *Duration `json:"timeout,omitempty"`
	// How long the run waits for hosts before it fails with a PlacementError. If it is not given,
	// a submitted run waits without limit.
	PlacementTimeout *Duration `json:"placement_timeout,omitempty"`
	// The runs that must have ended before this run begins, by their IDs. A run waits for the
	// latest run with the ID at the time of its own start. It is skipped if one of them has ended
	// in another way.
	After []After `json:"after,omitempty"`
	// The priority among the runs that wait for room, from 1, the highest, to 5. Runs of one
	// priority are served in the order in which they began to wait.
	Priority *int `json:"priority,omitempty"`
	// The signal that the tasks get with every notice, from a draining host or a person.
	// Default: none; they can ask for the notice.
	NoticeSignal string `json:"notice_signal,omitempty"`
	// What makes the run pending again, with its age: preemption, by a draining host; timeout, by
	// timeout or max_run_time; host-lost. max_restarts bounds the last two. With an empty list the
	// run finishes.
	RequeueOn []RequeueOn `json:"requeue_on,omitzero"`
	// On which hosts, and on how many, the tasks are placed; a plain number is the count. Default:
	// any hosts with room, on as few hosts as possible.
	Hosts Hosts `json:"hosts,omitzero"`
	// How an elastic run, whose hosts.count is a range, gets its hosts.
	Elastic Elastic `json:"elastic,omitzero"`
	// What releases the barriers of the tasks: the Temporal server, for tasks on any hosts, or
	// with local their host, in microseconds. local needs all tasks on one host.
	Barriers Barriers `json:"barriers,omitempty"`
	// How processes are asked to end, and how long they have.
	Stop Stop `json:"stop,omitzero"`
	// The treatment of processes by a host that cannot reach the Temporal server: keep lets them
	// continue, and no host is ever given up; {stop_after: TIME} stops them after that time, so
	// that they can restart elsewhere. With {stop_after: TIME, outage: TIME} a host asks the other
	// hosts of the run: it stops its processes after stop_after if it reaches none of them, and
	// after outage if none of them reaches the server. Hosts reach each other if their workers
	// serve output (--listen). Default: keep on one host, {stop_after: 15s, outage: 10m} on hosts
	// that reach each other (more than 15s above 120 tasks), {stop_after: 2m} on others, and on
	// one host if requeue_on has host-lost.
	OnDisconnect OnDisconnect `json:"on_disconnect,omitempty"`
	// The time without output, progress and processor time after which a task is shown as silent.
	// At least 30s; with auto, 5 times the longest pause of its process so far, and at least 10m.
	// Only output in files counts, and less than a hundredth of a processor counts as none.
	// Default: 10m for several tasks; a run of one task, and one with never, does not watch
	// silence.
	Silence Silence `json:"silence,omitempty"`
	// Whether only output and progress are signs of being at work, and processor time is not:
	// processes that wait for NCCL, or poll for messages in MPI, use all of a processor. Set it
	// for programs that print or report progress regularly.
	SilenceIgnoresCPU bool `json:"silence_ignores_cpu,omitempty"`
	// The reaction to the silence of all tasks of the run on a host: report saves the stacks of
	// all tasks and shows which ranks differ; restart does so and restarts all tasks, up to
	// max_restarts times; stop does so and ends the silent tasks as failures with the cause
	// silence, which restart like others. Default: report for several tasks; the silence of one
	// task is only shown.
	OnSilence OnSilence `json:"on_silence,omitempty"`
	// Whether stacks show the lines of Python programs. For that, PYTHONPATH begins with a
	// directory whose sitecustomize registers a handler of a real-time signal with faulthandler,
	// and then executes the program's own sitecustomize.
	PythonStacks *bool `json:"python_stacks,omitempty"`
	// The webhook to notify when the run has ended, and when on_silence finds silent tasks. See
	// `clusterrun help monitoring`.
	Notify Notification `json:"notify,omitzero"`
	// How the tasks stop gracefully, each by itself, when one of them or a person asks for it.
	StopTogether StopTogether `json:"stop_together,omitzero"`
	// The settings of the run's closure queue.
	Closures Closures `json:"closures,omitzero"`
	// The destination of the output of the processes.
	Logs Logs `json:"logs,omitzero"`
	// Whether the result includes the last lines of the output.
	ReturnOutput bool `json:"return_output,omitempty"`
	// The sets of environment variables that processes get. Default: tensorflow, torch and jax. An
	// empty list: none. With mpi, the processes are ranks of MPICH, Intel MPI or MVAPICH.
	EnvProfiles []EnvProfile `json:"env_profiles,omitzero"`
	// The GPUs of each host that are divided among its tasks, in CUDA_VISIBLE_DEVICES: auto for
	// all, or a list. Default: every task sees all.
	Devices Resources `json:"devices,omitzero"`
	// How many GPUs each task has for itself, in CUDA_VISIBLE_DEVICES, instead of devices. Runs
	// that share a host get different ones.
	GPUsPerTask *int `json:"gpus_per_task,omitempty"`
	// The CPUs of each host that are divided among its tasks, in blocks: auto for all, or a list.
	// Default: no binding.
	CPUs Resources `json:"cpus,omitzero"`
	// Bounds for what each task, with all its processes, uses of its host. A host that cannot
	// enforce a limit refuses the run before anything starts.
	Limits Limits `json:"limits,omitzero"`
	// Whether files in /dev/shm that earlier processes of the run have left are removed before a
	// process is started again: those that its user has created there since its first process, and
	// that no process has open. While a task of any run lives on the host, nothing is removed.
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
	// The number of tasks. They are placed on any hosts with room, on as few hosts as possible,
	// unless hosts changes that. Default 1. Cannot be combined with addresses.
	Count *int `json:"count,omitempty"`
	// Pins one task to each "host:port" or "host". The host is the name of a host worker;
	// localhost, 127.0.0.1 and [::1] mean the host on which the run is started.
	Addresses []string `json:"addresses,omitempty"`
	// Replaces the run's command for this type.
	Command []string `json:"command,omitempty"`
	// Appended to the command.
	Args []string `json:"args,omitempty"`
	// Replaces the run's working directory.
	Dir string `json:"dir,omitempty"`
	// Environment variables, which override the run's.
	Env Env `json:"env,omitempty"`
	// Changes to single tasks, by index ("0", "1", …).
	Overrides map[string]Override `json:"overrides,omitempty"`
	// Overrides fields of the run's stop.
	Stop Stop `json:"stop,omitzero"`
	// Overrides fields of the run's logs.
	Logs GroupLogs `json:"logs,omitzero"`
	// Replaces the run's devices; they are divided among these tasks. An empty list: none.
	Devices Resources `json:"devices,omitzero"`
	// Replaces the run's gpus_per_task, and its devices.
	GPUsPerTask *int `json:"gpus_per_task,omitempty"`
	// Replaces the run's cpus. An empty list: not bound.
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
	// OnSilenceRestart also restarts all tasks.
	OnSilenceRestart OnSilence = "restart"
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
