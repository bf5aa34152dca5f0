package spec

import (
	"fmt"
	"math"
	"time"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// TaskState is a task's state.
type TaskState string

// The values of [TaskState].
const (
	TaskPending  TaskState = "pending"  // not started yet
	TaskRunning  TaskState = "running"  // its RunTask activity is open
	TaskStopping TaskState = "stopping" // asked to exit
	TaskEnded    TaskState = "ended"
)

// RunState is a run's state.
type RunState string

// The values of [RunState].
const (
	RunPlacing    RunState = "placing"    // hosts are being reserved
	RunRunning    RunState = "running"    // tasks are starting or running
	RunRestarting RunState = "restarting" // the whole group is restarting
	RunStopping   RunState = "stopping"   // the verdict is known, tasks are stopping
	RunReleasing  RunState = "releasing"  // hosts are being released
	RunEnded      RunState = "ended"
)

// Status answers the status query. It omits process IDs and restarts, which are in activities'
// heartbeat details so that they do not add to the run's history.
type Status struct {
	State      RunState     `json:"state"`
	Generation int          `json:"generation"`
	Started    time.Time    `json:"started,omitzero"`
	Tasks      []TaskStatus `json:"tasks"`
	// GroupRestarts are the last restarts of the whole group, oldest first.
	GroupRestarts []GroupRestart `json:"group_restarts,omitempty"`
	// Preemptions counts how often the run returned to the queue after a notice. PendingSince is
	// when it last returned, if it is pending again.
	Preemptions  int       `json:"preemptions,omitempty"`
	PendingSince time.Time `json:"pending_since,omitzero"`
	// Notice is set while the tasks have notice of a stop.
	Notice *StopNotice `json:"notice,omitempty"`
	// Elastic is set if the number of hosts may change.
	Elastic *ElasticStatus `json:"elastic,omitempty"`
	// OnDisconnect is how the hosts treat processes while they cannot reach the server.
	OnDisconnect OnDisconnect `json:"on_disconnect,omitempty"`
	// GivenUpAfter is how long after a host's last heartbeat the run gives the host up, or 0 for
	// never.
	GivenUpAfter Duration `json:"given_up_after,omitempty"`
	// Stopping is set while the tasks are stopping together.
	Stopping *Stopping `json:"stopping,omitempty"`
	// Stacks is a summary of the last capture of the tasks' stacks.
	Stacks *stacktree.Findings `json:"stacks,omitempty"`
	// SilenceIgnoresCPU is as in [RunSpec].
	SilenceIgnoresCPU bool `json:"silence_ignores_cpu,omitempty"`
	// Archive describes the run's shipped directory.
	Archive *Archive `json:"archive,omitempty"`
	// Services are the services of the run's hosts, and of hosts that it left.
	Services []HostService `json:"services,omitempty"`
	// Sweep is set for a sweep, which has trials instead of tasks.
	Sweep *SweepStatus `json:"sweep,omitempty"`
	// Result is set once the run ends.
	Result *RunResult `json:"result,omitempty"`
}

// ElasticStatus is the size of an elastic run's generation.
type ElasticStatus struct {
	// Range is the minimum and maximum number of hosts, such as 2:4.
	Range HostCount `json:"range"`
	// Hosts and Tasks are the numbers of hosts and tasks in this generation. Hosts is 0 until the
	// generation is placed.
	Hosts int `json:"hosts"`
	Tasks int `json:"tasks"`
	// Grow reports whether the next generation may have more hosts.
	Grow Grow `json:"grow"`
}

// String returns, for example, "3 of 2:4 hosts, world size 6".
func (e ElasticStatus) String() string {
	if e.Hosts == 0 {
		return fmt.Sprintf("none of %s hosts", e.Range)
	}
	text := fmt.Sprintf("%d of %s hosts, world size %d", e.Hosts, e.Range, e.Tasks)
	if _, most := e.Range.Bounds(); e.Hosts < most && e.Grow == GrowNextGeneration {
		text += "; the next generation gets more if capacity permits"
	}
	return text
}

// HostService describes how to read a run's files on a host.
type HostService struct {
	Host string `json:"host"`
	// Address is HOST:PORT.
	Address string `json:"address"`
	// Fingerprint is the SHA-256 of the service's certificate, in hex.
	Fingerprint string `json:"fingerprint"`
	// Token grants read access to this run's files.
	Token string `json:"token"`
}

// TaskStatus is a task in a [Status].
type TaskStatus struct {
	Name    string    `json:"name"`
	Type    string    `json:"type"`
	Index   int       `json:"index"`
	Rank    int       `json:"rank"`
	Host    string    `json:"host,omitempty"`
	Address string    `json:"address,omitempty"`
	State   TaskState `json:"state"`
	// Activity is the ID of the task's activity, which is pending on the server while the task
	// runs.
	Activity string `json:"activity,omitempty"`
	Exit     *Exit  `json:"exit,omitempty"`
}

// Heartbeat contains the details of RunTask's heartbeats while a process runs. It must stay under
// 850 bytes.
type Heartbeat struct {
	PID      int       `json:"pid"`
	Host     string    `json:"host"`
	Restarts int       `json:"restarts"`
	Started  time.Time `json:"started,omitzero"`
	LogDir   string    `json:"log_dir,omitempty"`
	// Progress is the task's reported progress.
	Progress *Progress `json:"progress,omitempty"`
	// Steps is the duration of the process's steps, or nil if it did not report steps.
	Steps *StepTime `json:"steps,omitempty"`
	// Usage is the process's resource usage at the host's last look, or nil before the first
	// look.
	Usage *LiveUsage `json:"usage,omitempty"`
	// LastOutput is when the process last wrote to its files, as of that look. It is zero if it
	// did not write, or has no files.
	LastOutput time.Time `json:"last_output,omitzero"`
	// Unsupervised reports whether the host's supervisor does not answer.
	Unsupervised bool `json:"unsupervised,omitempty"`
}

// Fetching contains the details of Reserve's heartbeats while a host fetches the run's files.
type Fetching struct {
	Host string `json:"host"`
	// Bytes of Size were unpacked, or fetched if Unpacking is false.
	Bytes     int64 `json:"bytes"`
	Size      int64 `json:"size"`
	Unpacking bool  `json:"unpacking,omitempty"`
}

// Progress is a task's progress, as reported by the task.
type Progress struct {
	Current float64 `json:"current"`
	// Total is the final value of Current, or 0 if unknown.
	Total float64 `json:"total,omitempty"`
	// Message is a short message of at most 100 bytes.
	Message string `json:"message,omitempty"`
	// Metrics are up to eight numbers by name, such as a loss.
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

// Percent returns the completed share, rounded down. Total must be positive.
func (p *Progress) Percent() int { return int(math.Floor(100 * min(1, p.Current/p.Total))) }

// Usage is the resource usage of processes on their hosts.
type Usage struct {
	UserSeconds   float64 `json:"user_seconds,omitempty"`
	SystemSeconds float64 `json:"system_seconds,omitempty"`
	// MaxRSSBytes is the largest observed memory of a process and its descendants, or of one of
	// them if that was larger.
	MaxRSSBytes int64 `json:"max_rss_bytes,omitempty"`
	// GPUSeconds counts a second of full use of a GPU as one.
	GPUSeconds        float64 `json:"gpu_seconds,omitempty"`
	MaxGPUMemoryBytes int64   `json:"max_gpu_memory_bytes,omitempty"`
	// OutputBytes is the size of the stdout and stderr files.
	OutputBytes int64 `json:"output_bytes,omitempty"`
}

// CPUSeconds returns the CPU time.
func (u Usage) CPUSeconds() float64 { return u.UserSeconds + u.SystemSeconds }

// With combines two usages: the sums of times and bytes, and the larger memory.
func (u Usage) With(v Usage) Usage {
	return Usage{
		UserSeconds: milliseconds(u.UserSeconds + v.UserSeconds), SystemSeconds: milliseconds(u.SystemSeconds + v.SystemSeconds),
		MaxRSSBytes: max(u.MaxRSSBytes, v.MaxRSSBytes),
		GPUSeconds:  milliseconds(u.GPUSeconds + v.GPUSeconds), MaxGPUMemoryBytes: max(u.MaxGPUMemoryBytes, v.MaxGPUMemoryBytes),
		OutputBytes: u.OutputBytes + v.OutputBytes,
	}
}

// milliseconds rounds seconds to milliseconds, since sums of floats have rounding errors.
func milliseconds(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

// LiveUsage is a running process's usage, with its descendants: totals since the start, and
// current values. A host looks every ten seconds.
type LiveUsage struct {
	Usage
	// CPUs and GPUs are how many it keeps busy, such as 1.5, as of the last look.
	CPUs           float64 `json:"cpus"`
	GPUs           float64 `json:"gpus,omitempty"`
	RSSBytes       int64   `json:"rss_bytes"`
	GPUMemoryBytes int64   `json:"gpu_memory_bytes,omitempty"`
	Processes      int     `json:"processes"`
	// SilentSeconds is how long the task has been silent, once that exceeds the spec's silence.
	SilentSeconds int `json:"silent_seconds,omitempty"`
	// SilentAfter is after how many seconds it counts as silent, if that is adaptive.
	SilentAfter int `json:"silent_after_seconds,omitempty"`
}

// StepTime describes how long a task process's steps take, excluding waits at barriers.
type StepTime struct {
	// Seconds is the typical duration of its latest steps, or 0 if there are too few.
	Seconds float64 `json:"seconds,omitempty"`
	// Steps is the number of recorded steps.
	Steps int `json:"steps"`
	// Barriers reports whether its steps are rounds of barriers of all tasks. Otherwise, the
	// program's progress counts the steps.
	Barriers bool `json:"barriers,omitempty"`
}

// Slow is a task that takes longer per step than the rest of its type, or a host with only such
// tasks.
type Slow struct {
	// Task is empty if all Tasks of the type on the host are slow.
	Task  string `json:"task,omitempty"`
	Rank  int    `json:"rank"`
	Host  string `json:"host,omitempty"`
	Tasks int    `json:"tasks,omitempty"`
	// Ratio is Seconds divided by Others, the median of the other tasks.
	Ratio   float64 `json:"ratio"`
	Seconds float64 `json:"seconds"`
	Others  float64 `json:"others_seconds"`
	// Steps is the task's number of recorded steps. For Barriers, see [StepTime].
	Steps    int  `json:"steps"`
	Barriers bool `json:"barriers,omitempty"`
}

// String returns, for example, "host gpu-3: 1.8 × the median of the others over 50 rounds (90ms
// and 50ms)".
func (s Slow) String() string {
	who := fmt.Sprintf("%s (rank %d)", s.Task, s.Rank)
	switch {
	case s.Task == "":
		who = "host " + s.Host
	case s.Host != "":
		who += " on " + s.Host
	}
	return fmt.Sprintf("%s: %.1f × the median of the others over %s (%s and %s)", who, s.Ratio, s.count(), units.SpanOfSeconds(s.Seconds), units.SpanOfSeconds(s.Others))
}

func (s Slow) count() string {
	if s.Barriers {
		return units.Count(s.Steps, "round", "rounds")
	}
	return units.Count(s.Steps, "step", "steps")
}

// GroupRestart is a restart of the whole task group.
type GroupRestart struct {
	// Generation is the number of the launch that followed, from 1.
	Generation int `json:"generation"`
	// Attempt is the number of every task's first process in that generation, which logs to
	// attempt_N.
	Attempt int `json:"attempt"`
	// Failure is the root cause, or nil if an operator requested the restart.
	Failure *Failure `json:"failure,omitempty"`
	// Requeued is the reason why the run returned to the queue in between, if it did.
	Requeued RequeueOn `json:"requeued,omitempty"`
	// Reason is the notice's reason, for a preemption.
	Reason string `json:"reason,omitempty"`
}
