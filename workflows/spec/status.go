package spec

import (
	"fmt"
	"math"
	"time"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/timespan"
)

// TaskState is the state of a task.
type TaskState string

// The values of [TaskState].
const (
	TaskPending  TaskState = "pending"  // not started yet
	TaskRunning  TaskState = "running"  // its RunTask activity is open
	TaskStopping TaskState = "stopping" // asked to end
	TaskEnded    TaskState = "ended"
)

// RunState is the state of a run.
type RunState string

// The values of [RunState].
const (
	RunPlacing    RunState = "placing"    // hosts are being reserved
	RunRunning    RunState = "running"    // tasks are started or running
	RunRestarting RunState = "restarting" // the whole group is being started again
	RunStopping   RunState = "stopping"   // the verdict is known, tasks are ending
	RunReleasing  RunState = "releasing"  // hosts are being given back
	RunEnded      RunState = "ended"
)

// Status is the answer of the status query. Process IDs and restarts are not
// in it: they live in the heartbeat details of the activities and cost the run
// no history.
type Status struct {
	State      RunState     `json:"state"`
	Generation int          `json:"generation"`
	Started    time.Time    `json:"started,omitzero"`
	Tasks      []TaskStatus `json:"tasks"`
	// GroupRestarts are the last restarts of the whole group, the oldest first.
	GroupRestarts []GroupRestart `json:"group_restarts,omitempty"`
	// Preemptions counts the returns to the queue after a notice, and PendingSince is the time of
	// a return to the queue if the run is pending again.
	Preemptions  int       `json:"preemptions,omitempty"`
	PendingSince time.Time `json:"pending_since,omitzero"`
	// Notice is set while the tasks have notice that they will be stopped.
	Notice *StopNotice `json:"notice,omitempty"`
	// Elastic is set if the number of hosts may change.
	Elastic *ElasticStatus `json:"elastic,omitempty"`
	// OnDisconnect says how the hosts treat processes while they have no contact with the
	// server.
	OnDisconnect OnDisconnect `json:"on_disconnect,omitempty"`
	// GivenUpAfter is the time after the last heartbeat of a host at which the run gives it up, or 0
	// if it waits without limit.
	GivenUpAfter Duration `json:"given_up_after,omitempty"`
	// Stopping is set while the tasks are stopping together.
	Stopping *Stopping `json:"stopping,omitempty"`
	// Stacks summarizes the last capture of the tasks' stacks.
	Stacks *stacktree.Findings `json:"stacks,omitempty"`
	// SilenceIgnoresCPU is as in [RunSpec].
	SilenceIgnoresCPU bool `json:"silence_ignores_cpu,omitempty"`
	// Archive describes the shipped directory of the run.
	Archive *Archive `json:"archive,omitempty"`
	// Services are the services of the hosts of the run, and of hosts that it has left.
	Services []HostService `json:"services,omitempty"`
	// Sweep is set for a sweep, which has trials and no tasks.
	Sweep *SweepStatus `json:"sweep,omitempty"`
	// Result is set once the run has ended.
	Result *RunResult `json:"result,omitempty"`
}

// ElasticStatus is the size of a generation of an elastic run.
type ElasticStatus struct {
	// Range is the fewest and the most hosts, such as 2:4.
	Range HostCount `json:"range"`
	// Hosts is the number of hosts of this generation, and Tasks the number of its tasks. Hosts
	// is 0 until the generation is placed.
	Hosts int `json:"hosts"`
	Tasks int `json:"tasks"`
	// Grow says whether the next generation may have more.
	Grow Grow `json:"grow"`
}

// String says "3 of 2:4 hosts, world size 6".
func (e ElasticStatus) String() string {
	if e.Hosts == 0 {
		return fmt.Sprintf("none of %s hosts", e.Range)
	}
	text := fmt.Sprintf("%d of %s hosts, world size %d", e.Hosts, e.Range, e.Tasks)
	if _, most := e.Range.Bounds(); e.Hosts < most && e.Grow == GrowNextGeneration {
		text += "; the next generation has more if there is room"
	}
	return text
}

// HostService describes how to read the files of a run that are on a host.
type HostService struct {
	Host string `json:"host"`
	// Address is HOST:PORT.
	Address string `json:"address"`
	// Fingerprint is the SHA-256 of the certificate that the service has, in hex.
	Fingerprint string `json:"fingerprint"`
	// Token allows to read the files of this run.
	Token string `json:"token"`
}

// TaskStatus is one task in a [Status].
type TaskStatus struct {
	Name    string    `json:"name"`
	Type    string    `json:"type"`
	Index   int       `json:"index"`
	Rank    int       `json:"rank"`
	Host    string    `json:"host,omitempty"`
	Address string    `json:"address,omitempty"`
	State   TaskState `json:"state"`
	// Activity is the ID of the task's activity, which the server lists as
	// pending while the task runs.
	Activity string `json:"activity,omitempty"`
	Exit     *Exit  `json:"exit,omitempty"`
}

// Heartbeat has the details of RunTask's heartbeats while a process runs. It stays under 850
// bytes.
type Heartbeat struct {
	PID      int       `json:"pid"`
	Host     string    `json:"host"`
	Restarts int       `json:"restarts"`
	Started  time.Time `json:"started,omitzero"`
	LogDir   string    `json:"log_dir,omitempty"`
	// Progress is the progress that the task has reported.
	Progress *Progress `json:"progress,omitempty"`
	// Steps is the time that the process takes for a step. It is nil if the process has
	// reported none.
	Steps *StepTime `json:"steps,omitempty"`
	// Usage is the usage of the process at its host's last look. It is nil before the first.
	Usage *LiveUsage `json:"usage,omitempty"`
	// LastOutput is the time at which the process last wrote to its files, as of that look. It
	// is zero if it has not, or has no files.
	LastOutput time.Time `json:"last_output,omitzero"`
}

// Fetching has the details of Reserve's heartbeats while a host gets the run's files.
type Fetching struct {
	Host string `json:"host"`
	// Bytes of Size have been unpacked, or fetched if Unpacking is false.
	Bytes     int64 `json:"bytes"`
	Size      int64 `json:"size"`
	Unpacking bool  `json:"unpacking,omitempty"`
}

// Progress is the progress of a task, by its own account.
type Progress struct {
	Current float64 `json:"current"`
	// Total is the last value of Current, or 0 if it is unknown.
	Total float64 `json:"total,omitempty"`
	// Message is a short text, of at most 100 bytes.
	Message string `json:"message,omitempty"`
}

// Percent returns the part that is done, rounded down. Total must be positive.
func (p *Progress) Percent() int { return int(math.Floor(100 * min(1, p.Current/p.Total))) }

// Usage is the use that processes made of their hosts.
type Usage struct {
	UserSeconds   float64 `json:"user_seconds,omitempty"`
	SystemSeconds float64 `json:"system_seconds,omitempty"`
	// MaxRSSBytes is the largest observed memory of a process and its descendants together, or
	// of a single one of them if that was larger.
	MaxRSSBytes int64 `json:"max_rss_bytes,omitempty"`
	// GPUSeconds counts a second of a GPU in full use as one.
	GPUSeconds        float64 `json:"gpu_seconds,omitempty"`
	MaxGPUMemoryBytes int64   `json:"max_gpu_memory_bytes,omitempty"`
	// OutputBytes is the size of the files of stdout and stderr.
	OutputBytes int64 `json:"output_bytes,omitempty"`
}

// CPUSeconds returns the processor time.
func (u Usage) CPUSeconds() float64 { return u.UserSeconds + u.SystemSeconds }

// With returns the usage of both: the sums of times and bytes, and the larger memory.
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

// LiveUsage is the usage of a living process and its descendants: the totals since its start,
// and the present values. A host looks every ten seconds.
type LiveUsage struct {
	Usage
	// CPUs and GPUs are the numbers that it keeps busy, such as 1.5, as of the last look.
	CPUs           float64 `json:"cpus"`
	GPUs           float64 `json:"gpus,omitempty"`
	RSSBytes       int64   `json:"rss_bytes"`
	GPUMemoryBytes int64   `json:"gpu_memory_bytes,omitempty"`
	// Processes counts them.
	Processes int `json:"processes"`
	// SilentSeconds is the time for which the task has been silent, once that exceeds the silence of
	// its spec.
	SilentSeconds int `json:"silent_seconds,omitempty"`
	// SilentAfter is the time in seconds after which it counts as silent, if that was learnt.
	SilentAfter int `json:"silent_after_seconds,omitempty"`
}

// StepTime is the time that the process of a task takes for a step, without its waits at
// barriers.
type StepTime struct {
	// Seconds is the usual time of its latest steps; 0 while too few are known.
	Seconds float64 `json:"seconds,omitempty"`
	// Steps is the number of steps that are known.
	Steps int `json:"steps"`
	// Barriers reports whether its steps are the rounds of barriers of all tasks. Otherwise the
	// program counts its steps itself, by its progress.
	Barriers bool `json:"barriers,omitempty"`
}

// Slow is a task that takes longer for a step than others of its type, or a host whose tasks
// all do.
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
	// Steps is the number of known steps of the task; for Barriers see [StepTime].
	Steps    int  `json:"steps"`
	Barriers bool `json:"barriers,omitempty"`
}

// String returns "host gpu-3: 1.8 × the median of the others over 50 rounds (90ms and 50ms)".
func (s Slow) String() string {
	who := fmt.Sprintf("%s (rank %d)", s.Task, s.Rank)
	switch {
	case s.Task == "":
		who = "host " + s.Host
	case s.Host != "":
		who += " on " + s.Host
	}
	return fmt.Sprintf("%s: %.1f × the median of the others over %s (%s and %s)", who, s.Ratio, s.count(), timespan.OfSeconds(s.Seconds), timespan.OfSeconds(s.Others))
}

func (s Slow) count() string {
	if s.Barriers {
		return plural.Of(s.Steps, "round", "rounds")
	}
	return plural.Of(s.Steps, "step", "steps")
}

// GroupRestart is a restart of the whole group of tasks.
type GroupRestart struct {
	// Generation is the number of the launch of the group that followed, from 1.
	Generation int `json:"generation"`
	// Attempt is the number of the first process of every task in that generation: its logs
	// are in attempt_N.
	Attempt int `json:"attempt"`
	// Failure is the root cause, or nil if an operator asked for the restart.
	Failure *Failure `json:"failure,omitempty"`
	// Requeued is set if the run has returned to the queue in between, and why.
	Requeued RequeueOn `json:"requeued,omitempty"`
	// Reason is the reason of the notice, for a preemption.
	Reason string `json:"reason,omitempty"`
}
