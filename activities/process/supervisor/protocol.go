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

// Reason is why the supervisor stopped a process. Package activities, not the supervisor, derives
// the cause of the exit. For example, exit code 0 during a call is a failure.
type Reason string

// The values of [Reason], empty if the process exited on its own.
const (
	ReasonNone Reason = ""
	// ReasonCollateral means that another task or the run ended, so this task became pointless.
	ReasonCollateral Reason = "collateral"
	// ReasonTerminate and ReasonRestart mean that an operator requested it.
	ReasonTerminate Reason = "terminate"
	ReasonRestart   Reason = "restart"
	// ReasonMaxRunTime means that [Command]'s KillAt passed.
	ReasonMaxRunTime Reason = "max-run-time"
	// ReasonCutOff means that the process's [Contact] was not renewed in time.
	ReasonCutOff Reason = "cut-off"
	// ReasonShutdown means that the supervisor was asked to exit, or its owner died.
	ReasonShutdown Reason = "shutdown"
	// ReasonOOM means that the kernel killed it because it reached its [Limits.Memory], or killed
	// other processes while it ran ([Command.OOMFails]).
	ReasonOOM Reason = "oom"
	// ReasonSilence means that it was silent for too long.
	ReasonSilence Reason = "silence"
	// ReasonLogQuota means that it wrote more than [Command.LogQuota].
	ReasonLogQuota Reason = "log-quota"
)

// OwnersOutput stands for the output of the supervisor's owner ([Config.Owner]), which a foreground
// run uses.
const OwnersOutput = "owner"

// Command describes the program to execute.
type Command struct {
	Path string   `json:"path"` // absolute: PATH is not searched
	Args []string `json:"args"` // argv, including the program's name
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	// User is the process's user; nil means the supervisor's own. The supervisor also accesses the
	// following directories and files as that user.
	User *hostuser.User `json:"user,omitempty"`
	// LogDir is created, with its parents, before the files are opened. It is inside LogRoot, which
	// links must not leave; LogRoot is empty if unknown.
	LogDir  string `json:"log_dir"`
	LogRoot string `json:"log_root,omitempty"`
	// LogMode is the created directories' mode; files are not executable. By default only the user
	// may read them.
	LogMode fs.FileMode `json:"log_mode,omitempty"`
	// Stdin gives the process the owner's stdin instead of /dev/null.
	Stdin bool `json:"stdin,omitempty"`
	// Stdout and Stderr are the files that output is appended to. The process itself gets pipes.
	// /dev/null is allowed, and [OwnersOutput] means the owner's corresponding output.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// StdoutEnd and StderrEnd are the files that receive the end of output for the owner once the
	// process has ended, or empty.
	StdoutEnd string `json:"stdout_end,omitempty"`
	StderrEnd string `json:"stderr_end,omitempty"`
	// Foreground gives the process the owner's stdin, stdout and stderr, including a terminal.
	// Stdin, Stdout and Stderr are then ignored.
	Foreground bool `json:"foreground,omitempty"`
	// CPUs are the processors to bind the process to, or empty for all.
	CPUs   []int  `json:"cpus,omitempty"`
	Limits Limits `json:"limits,omitzero"`
	// LogQuota is how many bytes the run's processes may write to output files on this host; 0
	// means no limit. Over the quota, the process that has written most is killed or, if LogDrop is
	// set, the excess is dropped.
	LogQuota int64 `json:"log_quota,omitempty"`
	LogDrop  bool  `json:"log_drop,omitempty"`
	// Stop determines how the processes that the program leaves running are stopped if it exits on
	// its own. Without a grace they are killed immediately.
	Stop Stop `json:"stop,omitzero"`
	// StopGroup sends stop signals to the whole group immediately. By default only the program gets
	// them, since it may need its helpers to save its work.
	StopGroup bool `json:"stop_group,omitempty"`
	// OOMFails makes a process with exit code 0 fail if the kernel killed other processes to free
	// memory meanwhile; see [Exit.OOMKills].
	OOMFails bool `json:"oom_fails,omitempty"`
	// KillAt is when the process is killed for running too long, in nanoseconds of CLOCK_BOOTTIME;
	// 0 means never.
	KillAt int64 `json:"kill_at"`
}

// Contact limits the life of a process if its task may be started elsewhere: the server must keep
// answering the side for this task. Start and Renew set the deadline, which needs an answer. So a
// side that was killed, is frozen, crashes repeatedly or cannot log in does not extend it.
type Contact struct {
	// Until is when the process is stopped, in nanoseconds of CLOCK_BOOTTIME: a fixed time after
	// the last answered request was sent to the server. It is 0 if the process does not need
	// contact.
	Until int64 `json:"until"`
	// Signal and Grace determine that stop.
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
	// and the task is restarted.
	Granted bool `json:"granted,omitempty"`
	// Failures counts the launch's failed processes up to this one. Like Note, which only the
	// caller reads, it is reported when the next process is granted.
	Failures int    `json:"failures,omitempty"`
	Note     string `json:"note,omitempty"`
}

// Ref returns a reference to the process.
func (p Process) Ref() ProcessRef { return ProcessRef{Key: p.Key, Number: p.Number} }

// Exit describes how a process ended.
type Exit struct {
	// Code is the exit code, or -N if signal N killed the process.
	Code int `json:"code"`
	// Reason is why the supervisor or the kernel stopped it, or empty if it exited on its own.
	Reason Reason `json:"reason,omitempty"`
	// Detail holds the numbers of [ReasonOOM] and [ReasonLogQuota], what cut a grace short for
	// [ReasonShutdown], or a [StopRequest]'s Detail.
	Detail string `json:"detail,omitempty"`
	// Sent reports whether it was killed by a signal that a [SignalRequest] sent.
	Sent bool `json:"sent,omitempty"`
	// Dropped counts output bytes missing from its files, because they exceeded the quota, see
	// [Command.LogDrop], or could not be written.
	Dropped int64 `json:"dropped,omitempty"`
	// Swept counts the processes that it left behind, which were then stopped.
	Swept int `json:"swept,omitempty"`
	// Killed counts those killed by SIGKILL, because they outlived the grace, if any.
	Killed int `json:"killed,omitempty"`
	// OOMKills counts the processes that the kernel killed to free memory while it ran. OOMScope is
	// "task" if all of them were the task's own. It is "cgroup" if they were in the supervisor's
	// cgroup, because the task lacks its own memory controller, or "host".
	OOMKills int    `json:"oom_kills,omitempty"`
	OOMScope string `json:"oom_scope,omitempty"`
	// Failed reports whether it had already failed when it was stopped.
	Failed bool `json:"failed,omitempty"`
	// Lost reports whether the process was lost with its host, supervisor or boot, so that its exit
	// is unknown.
	Lost bool `json:"lost,omitempty"`
	// Unkillable reports whether it was still alive some time after SIGKILL and was given up.
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

// Survivor is a process that survives SIGKILL. Its ID is unique together with its start, in clock
// ticks since boot.
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

// AttachReply lists the task's processes, oldest first: the first of each launch, and the last
// hundred.
type AttachReply struct{ Processes []Process }

// StartRequest starts process Number of a task. It is idempotent: if Number is journalled, the
// reply is that process.
type StartRequest struct {
	Key     runkey.Task
	Fence   Fence
	Number  int
	Command Command
	// Contact is refused if already expired.
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
// one line of JSON. An owner uses it when its side cannot continue, for example without a server.
type StopAll struct {
	Stops
	// Recorded reports whether the server knows how all runs ended. The side, with nothing left to
	// report, is then killed.
	Recorded bool `json:"recorded,omitempty"`
	// Later reports whether the request, instead of stopping anything now, replaces the signals
	// that runs request when they stop their processes.
	Later bool `json:"later,omitempty"`
}

// Stops describes how several tasks' processes are stopped.
type Stops struct {
	Stop
	// Tasks lists the tasks that are stopped differently.
	Tasks map[string]Stop `json:"tasks,omitempty"`
}

// Stop describes how a process is stopped: a signal number and the time until SIGKILL.
type Stop struct {
	Signal int           `json:"signal"`
	Grace  time.Duration `json:"grace"`
}

// Except makes s the way to stop a task's processes.
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
// After the release, the run cannot start processes; its old ones stay readable for seven days.
type ReleaseRequest struct {
	Run runkey.Run
	Stops
}

// ProcessesReply lists processes by task and number.
type ProcessesReply struct{ Processes []Process }

// Limits limits what a process and all its descendants use together. 0 means no limit.
type Limits struct {
	Memory int64 `json:"memory,omitempty"` // bytes
	CPUs   int   `json:"cpus,omitempty"`   // full processors
	PIDs   int   `json:"pids,omitempty"`   // processes and threads
	// Rlimits are limits of setrlimit(2), which apply to each process separately.
	Rlimits []Rlimit `json:"rlimits,omitempty"`
}

// Rlimit is a limit of setrlimit(2), soft and hard.
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
// and pids. Why explains missing ones.
type ControllersReply struct {
	Controllers []string
	Why         string
}

// ClosingReply reports that the supervisor is exiting. OwnerGone reports whether that is because
// the owner exited or requested it ([StopAll]).
type ClosingReply struct{ OwnerGone bool }
