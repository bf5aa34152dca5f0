package spec

// RunSpec describes a run: the tasks of a cluster, the command of each, and the rules by which
// the run ends. [Reference] describes every field of it and of the types below. The zero value
// of an optional field means "not given"; [RunSpec.WithDefaults] fills those in.
type RunSpec struct {
	Name                  string       `json:"name,omitempty"`
	Command               []string     `json:"command,omitempty"`
	Tasks                 []TaskGroup  `json:"tasks"`
	Dir                   string       `json:"dir,omitempty"`
	Ship                  Ship         `json:"ship,omitzero"`
	RecordSource          *bool        `json:"record_source,omitempty"`
	Env                   Env          `json:"env,omitempty"`
	UnsetEnv              []string     `json:"unset_env,omitempty"`
	RPCLayer              string       `json:"rpc_layer,omitempty"`
	DependenceOnChief     *bool        `json:"dependence_on_chief,omitempty"`
	ChiefGrace            *Duration    `json:"chief_grace,omitempty"`
	OnFailure             OnFailure    `json:"on_failure,omitempty"`
	AutoRestart           bool         `json:"auto_restart,omitempty"`
	RestartScope          RestartScope `json:"restart_scope,omitempty"`
	MaxRestarts           *int         `json:"max_restarts,omitempty"`
	GiveUpWithoutProgress *int         `json:"give_up_without_progress,omitempty"`
	GiveUpOnSameError     *int         `json:"give_up_on_same_error,omitempty"`
	OnOOM                 OnOOM        `json:"on_oom,omitempty"`
	MaxRunTime            *Duration    `json:"max_run_time,omitempty"`
	Timeout               *Duration    `json:"timeout,omitempty"`
	PlacementTimeout      *Duration    `json:"placement_timeout,omitempty"`
	After                 []After      `json:"after,omitempty"`
	Priority              *int         `json:"priority,omitempty"`
	Preemption            Preemption   `json:"preemption,omitzero"`
	RequeueOn             []RequeueOn  `json:"requeue_on,omitzero"`
	Hosts                 Hosts        `json:"hosts,omitzero"`
	Elastic               Elastic      `json:"elastic,omitzero"`
	Barriers              Barriers     `json:"barriers,omitempty"`
	Stop                  Stop         `json:"stop,omitzero"`
	OnDisconnect          OnDisconnect `json:"on_disconnect,omitempty"`
	Silence               Silence      `json:"silence,omitempty"`
	SilenceIgnoresCPU     bool         `json:"silence_ignores_cpu,omitempty"`
	OnSilence             OnSilence    `json:"on_silence,omitempty"`
	PythonStacks          *bool        `json:"python_stacks,omitempty"`
	Notify                Notification `json:"notify,omitzero"`
	StopTogether          StopTogether `json:"stop_together,omitzero"`
	Closures              Closures     `json:"closures,omitzero"`
	Logs                  Logs         `json:"logs,omitzero"`
	ReturnOutput          bool         `json:"return_output,omitempty"`
	EnvProfiles           []EnvProfile `json:"env_profiles,omitzero"`
	Devices               Resources    `json:"devices,omitzero"`
	GPUsPerTask           *int         `json:"gpus_per_task,omitempty"`
	CPUs                  Resources    `json:"cpus,omitzero"`
	Limits                Limits       `json:"limits,omitzero"`
	CleanShm              bool         `json:"clean_shm,omitempty"`
	Signature             *Signature   `json:"signature,omitempty"`
}

// TaskGroup is the tasks of one type. It has either a count, and the tasks go to any hosts with
// room, or addresses, and each task runs on the host its address names.
type TaskGroup struct {
	Type        string              `json:"type"`
	Count       *int                `json:"count,omitempty"`
	Addresses   []string            `json:"addresses,omitempty"`
	Command     []string            `json:"command,omitempty"`
	Args        []string            `json:"args,omitempty"`
	Dir         string              `json:"dir,omitempty"`
	Env         Env                 `json:"env,omitempty"`
	Overrides   map[string]Override `json:"overrides,omitempty"`
	Stop        Stop                `json:"stop,omitzero"`
	Logs        GroupLogs           `json:"logs,omitzero"`
	Devices     Resources           `json:"devices,omitzero"`
	GPUsPerTask *int                `json:"gpus_per_task,omitempty"`
	CPUs        Resources           `json:"cpus,omitzero"`
	Limits      Limits              `json:"limits,omitzero"`
}

// Limits bound what each task uses of its host, with all of its processes together.
type Limits struct {
	Memory string `json:"memory,omitempty"`
	CPUs   *int   `json:"cpus,omitempty"`
	PIDs   *int   `json:"pids,omitempty"`
	NoFile *int   `json:"nofile,omitempty"`
	Core   string `json:"core,omitempty"`
}

// GroupLogs says where the output of the tasks of one type goes. The masks are like the masks
// of [Logs], but count the tasks of the type, by index.
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

// Stop says how a process is asked to end.
type Stop struct {
	Signal string    `json:"signal,omitempty"`
	Grace  *Duration `json:"grace,omitempty"`
	Scope  StopScope `json:"scope,omitempty"`
	// ErrorGrace is part of Grace.
	ErrorGrace *Duration `json:"error_grace,omitempty"`
}

// StopScope says whom the signal of a [Stop] reaches first.
type StopScope string

const (
	// StopScopeProgram reaches only the program, which may need its helpers to save its work.
	// They get the signal when it has ended or has little time left.
	StopScopeProgram StopScope = "program"
	// StopScopeGroup reaches the whole process group.
	StopScopeGroup StopScope = "group"
)

var stopScopes = []StopScope{StopScopeProgram, StopScopeGroup}

// Logs says where the output of the processes goes. With the directory [NullDir] the shown
// output goes straight to the console, which a host may not have. Output is dropped if the
// filters keep it from the console and it has no file.
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

// NullDir is the log directory that means no directory.
const NullDir = "/dev/null"

// OnFull says how output beyond the quota is handled.
type OnFull string

// The values of [OnFull].
const (
	// OnFullFail ends the task that has written most, as a failure.
	OnFullFail OnFull = "fail"
	// OnFullDrop drops it, with a note in the file and in the result.
	OnFullDrop OnFull = "drop"
)

// OnOOM says what becomes of a task that exits with 0 although the kernel has killed some of its
// processes to free memory.
type OnOOM string

// The values of [OnOOM].
const (
	// OnOOMReport has the report say so.
	OnOOMReport OnOOM = "report"
	// OnOOMFail makes it a failure.
	OnOOMFail OnOOM = "fail"
)

// OnSilence says how silent tasks are handled.
type OnSilence string

// The values of [OnSilence].
const (
	// OnSilenceReport captures the stacks of all tasks of the run, and shows the findings.
	OnSilenceReport OnSilence = "report"
	// OnSilenceRestart does so and restarts all tasks.
	OnSilenceRestart OnSilence = "restart"
	// OnSilenceStop does so and stops the silent tasks: they have failed.
	OnSilenceStop OnSilence = "stop"
)

// OnFailure says how a task's final failure affects the others.
type OnFailure string

// The values of [OnFailure].
const (
	// OnFailureStop stops the other tasks.
	OnFailureStop OnFailure = "stop"
	// OnFailureContinue lets the other tasks end by themselves.
	OnFailureContinue OnFailure = "continue"
)

// RestartScope is the part of a run that a restart starts again.
type RestartScope string

// The values of [RestartScope].
const (
	RestartScopeTask  RestartScope = "task"
	RestartScopeGroup RestartScope = "group"
)

// Barriers says whether hosts or the server release the barriers of a run.
type Barriers string

// The values of [Barriers].
const (
	// BarriersServer makes the Temporal server release them, also across hosts, unless an
	// arrival asks for a local one.
	BarriersServer Barriers = "server"
	// BarriersLocal makes the host release them, in microseconds, also while the server is
	// away. All tasks must be on one host.
	BarriersLocal Barriers = "local"
)

// EnvProfile names a set of environment variables.
type EnvProfile string

// The values of [EnvProfile].
const (
	EnvTensorFlow EnvProfile = "tensorflow"
	EnvTorch      EnvProfile = "torch"
	EnvJAX        EnvProfile = "jax"
	// EnvMPI starts each process by `clusterrun task mpi`, so that programs of MPICH's family
	// are the ranks of one world. It is not among the default profiles.
	EnvMPI EnvProfile = "mpi"
)

// Signature is an SSH signature of a run, or of a request to one. It is made last: any later
// change makes it invalid.
type Signature struct {
	// Expires is the time, as in RFC 3339, after which no host accepts the signed run or
	// request for the first time.
	Expires string `json:"expires"`
	// Size is the number of tasks that were signed, of which an elastic run may have fewer. 0
	// means the number of tasks in the spec.
	Size int `json:"size,omitempty"`
	// SSH is the signature as ssh-keygen(1) writes it.
	SSH string `json:"ssh"`
}

// AsSigned returns the spec that a signature covers: with defaults, without the signature, and
// with all the tasks of an elastic run, of which a generation may have fewer.
func (s *RunSpec) AsSigned() *RunSpec {
	signed := s.WithDefaults()
	signature := signed.Signature
	signed.Signature = nil
	if signature == nil || !signed.IsElastic() || len(signed.Tasks) == 0 || signature.Size <= signed.total() {
		return signed
	}
	return signed.resized(signature.Size)
}
