package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/output"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/ports"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Fence orders a task's commanders by launch (`clusterrun start`), then by execution of the run's
// workflow, then by activity attempt. The supervisor refuses requests with a lower fence than it
// has seen.
type Fence struct {
	Launch    int `json:"launch"`
	Execution int `json:"execution,omitempty"`
	Attempt   int `json:"attempt"`
}

// Less reports whether f is older than g.
func (f Fence) Less(g Fence) bool {
	if f.Launch != g.Launch {
		return f.Launch < g.Launch
	}
	if f.Execution != g.Execution {
		return f.Execution < g.Execution
	}
	return f.Attempt < g.Attempt
}

func (f Fence) String() string {
	if f.Execution > 0 {
		return fmt.Sprintf("launch %d execution %d attempt %d", f.Launch, f.Execution, f.Attempt)
	}
	return fmt.Sprintf("launch %d attempt %d", f.Launch, f.Attempt)
}

// Reason is why the supervisor stopped a process. The cause of an exit is derived by package
// activities, not by the supervisor. For example, exit code 0 during a call is a failure.
type Reason string

// The values of [Reason], empty if the process exited on its own.
const (
	ReasonNone Reason = ""
	// ReasonCollateral means that this task became pointless because another task or the run ended.
	ReasonCollateral Reason = "collateral"
	// ReasonTerminate and ReasonRestart mean that an operator requested the stop.
	ReasonTerminate Reason = "terminate"
	ReasonRestart   Reason = "restart"
	// ReasonMaxRunTime means that the time in [Command.KillAt] has passed.
	ReasonMaxRunTime Reason = "max-run-time"
	// ReasonCutOff means that the process's [Contact] was not renewed in time.
	ReasonCutOff Reason = "cut-off"
	// ReasonShutdown means that the supervisor was asked to exit, or its owner died.
	ReasonShutdown Reason = "shutdown"
	// ReasonOOM means that the kernel killed the process because it reached its [Limits.Memory], or
	// killed other processes while it ran ([Command.OOMFails]).
	ReasonOOM Reason = "oom"
	// ReasonSilence means that the process was silent for too long.
	ReasonSilence Reason = "silence"
	// ReasonLogQuota means that the process wrote more than [Command.LogQuota].
	ReasonLogQuota Reason = "log-quota"
)

// OwnersOutput stands for the output of the supervisor's owner ([Config.Owner]), which a foreground
// run uses.
const OwnersOutput = "owner"

// Command describes the program to execute.
type Command struct {
	Path string   `json:"path"` // absolute, because PATH is not searched
	Args []string `json:"args"` // argv, including the program's name
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	// User is the process's user; nil means the supervisor's own. The supervisor also accesses the
	// following directories and files as that user.
	User *hostuser.User `json:"user,omitempty"`
	// LogDir is created, with its parents, before the files are opened. It is within LogRoot, and
	// links must not lead out of LogRoot, which is empty if unknown.
	LogDir  string `json:"log_dir"`
	LogRoot string `json:"log_root,omitempty"`
	// LogMode is the mode of directories that are created; files are not executable. By default,
	// only the user may read them.
	LogMode fs.FileMode `json:"log_mode,omitempty"`
	// Stdin reports whether the process gets the owner's stdin instead of /dev/null.
	Stdin bool `json:"stdin,omitempty"`
	// Stdout and Stderr are the files that output is appended to. The process itself gets pipes.
	// /dev/null is allowed, and [OwnersOutput] means the owner's corresponding output.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// StdoutEnd and StderrEnd are files, or empty. Once the process has ended, they receive the end
	// of the output that went to the owner.
	StdoutEnd string `json:"stdout_end,omitempty"`
	StderrEnd string `json:"stderr_end,omitempty"`
	// Foreground reports whether the process gets the owner's stdin, stdout and stderr, including a
	// terminal. If so, the fields Stdin, Stdout and Stderr are ignored.
	Foreground bool `json:"foreground,omitempty"`
	// CPUs are the processors to bind the process to, or empty for all.
	CPUs   []int  `json:"cpus,omitempty"`
	Limits Limits `json:"limits,omitzero"`
	// LogQuota is the number of bytes that the run's processes may write to output files on this
	// host; 0 means no limit. If they exceed the quota, the process that has written the most is
	// killed or, if LogDrop is set, the excess is dropped.
	LogQuota int64 `json:"log_quota,omitempty"`
	LogDrop  bool  `json:"log_drop,omitempty"`
	// Stop determines how the processes that the program leaves running are stopped if it exits on
	// its own. If there is no grace, they are killed immediately.
	Stop Stop `json:"stop,omitzero"`
	// StopGroup reports whether stop signals are sent to the whole group immediately. By default,
	// they are sent only to the program, which may need its helpers to save its work.
	StopGroup bool `json:"stop_group,omitempty"`
	// OOMFails reports whether a process with exit code 0 fails if the kernel killed other
	// processes to free memory while it ran; see [Exit.OOMKills].
	OOMFails bool `json:"oom_fails,omitempty"`
	// KillAt is when the process is killed for running too long, in nanoseconds of CLOCK_BOOTTIME;
	// 0 means never.
	KillAt int64 `json:"kill_at"`
}

// Contact limits the life of a process whose task may be started elsewhere. The process may live
// only as long as the server keeps answering the side's requests about this task. Start and Renew
// set the deadline, and the side calls them only after an answer. So a side that was killed, is
// frozen, crashes repeatedly or cannot log in does not extend it.
type Contact struct {
	// Until is when the process is stopped, in nanoseconds of CLOCK_BOOTTIME. It is a fixed time
	// after the side sent the last request that the server answered, or 0 if the process does not
	// need contact.
	Until int64 `json:"until"`
	// Signal and Grace determine how the process is stopped.
	Signal int           `json:"signal"`
	Grace  time.Duration `json:"grace"`
}

// Process is the journal's record of one process of a task.
type Process struct {
	Key runkey.Task `json:"key"`
	// Number counts a task's processes from 0, across restarts and start-task. It identifies the
	// journal entry.
	Number int `json:"number"`
	// Launch is the launch that started this process.
	Launch int    `json:"launch"`
	PID    int    `json:"pid"`
	LogDir string `json:"log_dir"`
	// User is the user's name, if not the supervisor's own.
	User    string    `json:"user,omitempty"`
	Started time.Time `json:"started"`
	// Exit is nil while the process lives.
	Exit *Exit `json:"exit,omitempty"`
	// Granted reports whether the task's next process may be started, because the exit was judged
	// and the task is to be restarted.
	Granted bool `json:"granted,omitempty"`
	// Failures is the number of the launch's failed processes, up to and including this one. Like
	// Note, which only the caller interprets, it is set when the next process is granted.
	Failures int    `json:"failures,omitempty"`
	Note     string `json:"note,omitempty"`
}

// Ref returns a reference to the process.
func (p Process) Ref() ProcessRef { return ProcessRef{Key: p.Key, Number: p.Number} }

// Exit describes how a process ended.
type Exit struct {
	// Code is the exit code, or -N if signal N killed the process.
	Code int `json:"code"`
	// Reason is why the supervisor or the kernel stopped the process, or empty if it exited on its
	// own.
	Reason Reason `json:"reason,omitempty"`
	// Detail holds the numbers of [ReasonOOM] and [ReasonLogQuota], what cut a grace short for
	// [ReasonShutdown], or a [StopRequest]'s Detail.
	Detail string `json:"detail,omitempty"`
	// Sent reports whether the process was killed by a signal from a [SignalRequest].
	Sent bool `json:"sent,omitempty"`
	// Dropped is the number of output bytes that are missing from its files because they exceeded
	// the quota (see [Command.LogDrop]) or could not be written.
	Dropped int64 `json:"dropped,omitempty"`
	// Swept counts the processes that it left behind, which were then stopped.
	Swept int `json:"swept,omitempty"`
	// Killed is the number of those that were killed with SIGKILL, because they outlived the grace
	// or there was none.
	Killed int `json:"killed,omitempty"`
	// OOMKills counts the processes that the kernel killed to free memory while it ran. OOMScope is
	// "task" if all of them were the task's own. It is "cgroup" if they were in the supervisor's
	// cgroup, because the task lacks its own memory controller, or "host".
	OOMKills int    `json:"oom_kills,omitempty"`
	OOMScope string `json:"oom_scope,omitempty"`
	// Failed reports whether the process had already failed when it was stopped.
	Failed bool `json:"failed,omitempty"`
	// Lost reports whether the process was lost with its host, supervisor or boot, so that its exit
	// is unknown.
	Lost bool `json:"lost,omitempty"`
	// Unkillable reports whether the process was still alive some time after SIGKILL and was given
	// up.
	Unkillable bool `json:"unkillable,omitempty"`
	// Left lists the processes still alive at that time.
	Left []Survivor `json:"left,omitempty"`
	// StartError is why the program could not be executed.
	StartError string    `json:"start_error,omitempty"`
	Ended      time.Time `json:"ended"`
	// BootNanos is the end time on CLOCK_BOOTTIME.
	BootNanos int64 `json:"boot_ns"`
	Usage
}

// Survivor is a process that survives SIGKILL. Its ID is unique in combination with its start time,
// in clock ticks since boot.
type Survivor struct {
	PID   int    `json:"pid"`
	Ticks uint64 `json:"ticks"`
}

// Lives reports whether the process still exists.
func (s Survivor) Lives() bool {
	stat, err := proc.ReadStat(s.PID)
	return err == nil && stat.Ticks == s.Ticks && !stat.Dead()
}

// Survivors returns the processes in e.Left that still exist. e may be nil.
func (e *Exit) Survivors() (left []Survivor) {
	if e != nil {
		for _, s := range e.Left {
			if s.Lives() {
				left = append(left, s)
			}
		}
	}
	return left
}

// AttachRequest announces a task's new commander.
type AttachRequest struct {
	Key   runkey.Task
	Fence Fence
}

// AttachReply lists the first process of each launch and the task's last hundred processes, oldest
// first.
type AttachReply struct{ Processes []Process }

// StartRequest starts process Number of a task. It is idempotent: if process Number is already
// journalled, the reply is that process.
type StartRequest struct {
	Key     runkey.Task
	Fence   Fence
	Number  int
	Command Command
	// Contact is refused if it has already expired.
	Contact Contact
}

// RenewRequest extends the [Contact] of a task's living process.
type RenewRequest struct {
	Key   runkey.Task
	Fence Fence
	Until int64
}

// ProcessRef identifies a process.
type ProcessRef struct {
	Key    runkey.Task
	Number int
}

// GrantRequest permits the start of the process after Number.
type GrantRequest struct {
	Key    runkey.Task
	Fence  Fence
	Number int
	// Failures and Note are stored in the process.
	Failures int
	Note     string
}

// StopAll is a request to stop everything and exit, which the owner can write to the lifeline as
// one line of JSON. The owner uses it if its side cannot continue, for example because there is no
// server.
type StopAll struct {
	Stops
	// Recorded reports whether the server knows how all runs ended. If so, the side has nothing
	// left to report, and is killed.
	Recorded bool `json:"recorded,omitempty"`
	// Later reports whether the request does not stop anything now, but instead replaces the
	// signals that runs request when they stop their processes.
	Later bool `json:"later,omitempty"`
}

// Stops describes how several tasks' processes are stopped.
type Stops struct {
	Stop
	// Tasks lists tasks that are stopped in a different way.
	Tasks map[string]Stop `json:"tasks,omitempty"`
}

// Stop describes how a process is stopped: a signal number and the time until SIGKILL.
type Stop struct {
	Signal int           `json:"signal"`
	Grace  time.Duration `json:"grace"`
}

// Except makes a stop the given task's processes as described by s.
func (a *Stops) Except(task string, s Stop) {
	if s == a.Stop {
		return
	}
	if a.Tasks == nil {
		a.Tasks = map[string]Stop{}
	}
	a.Tasks[task] = s
}

// of returns how a task's processes are stopped.
func (a Stops) of(task string) Stop {
	if s, ok := a.Tasks[task]; ok {
		return s
	}
	return a.Stop
}

// Longest returns the longest grace.
func (a Stops) Longest() time.Duration {
	grace := a.Grace
	for _, s := range a.Tasks {
		grace = max(grace, s.Grace)
	}
	return grace
}

// check returns an error for an invalid signal.
func (a Stops) check() error {
	err := checkSignal(a.Signal)
	for _, s := range a.Tasks {
		err = errors.Join(err, checkSignal(s.Signal))
	}
	return err
}

// TasksReply names the tasks that a request reached.
type TasksReply struct{ Tasks []string }

// PortLeaseRequest leases ports for a run.
type PortLeaseRequest = ports.Request

// PortLeaseReply lists the Count ports.
type PortLeaseReply struct{ Ports []int }

// ReleaseRequest ends a run on this host: its remaining processes are stopped and its ports freed.
// After the release, the run cannot start processes. Its old ones can be read for seven days.
type ReleaseRequest struct {
	Run runkey.Run
	Stops
}

// ProcessesReply lists processes by task and number.
type ProcessesReply struct{ Processes []Process }

// Limits limits what a process and all its descendants together use. 0 means no limit.
type Limits struct {
	Memory int64 `json:"memory,omitempty"` // bytes
	CPUs   int   `json:"cpus,omitempty"`   // full processors
	PIDs   int   `json:"pids,omitempty"`   // processes and threads
	// Rlimits are limits of setrlimit(2), which apply to each process separately.
	Rlimits []Rlimit `json:"rlimits,omitempty"`
}

// Rlimit is a soft and hard limit for setrlimit(2).
type Rlimit = fork.Rlimit

// Controllers returns the cgroup controllers that the limits need.
func (l Limits) Controllers() (needed []string) {
	for name, n := range map[string]int64{"cpu": int64(l.CPUs), "memory": l.Memory, "pids": int64(l.PIDs)} {
		if n > 0 {
			needed = append(needed, name)
		}
	}
	slices.Sort(needed)
	return needed
}

// UnkeptReply holds pieces of outputs, in order for each output.
type UnkeptReply struct{ Unkept []output.Unkept }

// ControllersReply lists the cgroup controllers that can limit processes on this host: cpu, memory
// and pids. Why explains which are missing, and why.
type ControllersReply struct {
	Controllers []string
	Why         string
}

// ClosingReply reports that the supervisor is exiting. OwnerGone reports whether that is because
// the owner exited or requested it ([StopAll]).
type ClosingReply struct{ OwnerGone bool }
