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

// Fence orders the commanders of a task: by launch (`clusterrun start`), within a launch by the
// execution of the run's workflow, and within that by activity attempt. The supervisor
// refuses a request with a lower fence than it has seen.
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

// Reason is why the supervisor stopped a process. Package activities derives the cause of the
// end from it, which the supervisor does not know: for example, the exit code 0 during a call is
// a failure.
type Reason string

// The values of [Reason]. It is empty if the process ended by itself.
const (
	ReasonNone Reason = ""
	// ReasonCollateral means that this task became pointless at the end of another task, or of
	// the run.
	ReasonCollateral Reason = "collateral"
	// ReasonTerminate and ReasonRestart mean that an operator asked for it.
	ReasonTerminate Reason = "terminate"
	ReasonRestart   Reason = "restart"
	// ReasonMaxRunTime means that KillAt of the command passed.
	ReasonMaxRunTime Reason = "max-run-time"
	// ReasonCutOff means that the [Contact] that the process needs was not renewed in time.
	ReasonCutOff Reason = "cut-off"
	// ReasonShutdown means that the supervisor was asked to end, or that its owner died.
	ReasonShutdown Reason = "shutdown"
	// ReasonOOM means that the kernel killed it because it had reached its [Limits.Memory], or
	// other processes while it ran ([Command.OOMFails]).
	ReasonOOM Reason = "oom"
	// ReasonSilence means that it was silent for too long.
	ReasonSilence Reason = "silence"
	// ReasonLogQuota means that it wrote more than [Command.LogQuota].
	ReasonLogQuota Reason = "log-quota"
)

// OwnersOutput stands for the output of the supervisor's owner ([Config.Owner]), which a run
// in the foreground has.
const OwnersOutput = "owner"

// Command describes the program to execute.
type Command struct {
	Path string   `json:"path"` // absolute: PATH is not searched
	Args []string `json:"args"` // argv, including the program's name
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	// User is the user of the process; nil is the supervisor's own. The supervisor also
	// handles the directories and files below as that user.
	User *hostuser.User `json:"user,omitempty"`
	// LogDir is created, with its parents, before the files are opened. It is below LogRoot,
	// which no link may leave; LogRoot is empty if it is unknown.
	LogDir  string `json:"log_dir"`
	LogRoot string `json:"log_root,omitempty"`
	// LogMode is the mode of the created directories; files are not executable. By default
	// only the user may read them.
	LogMode fs.FileMode `json:"log_mode,omitempty"`
	// Stdin gives the process the owner's stdin, and otherwise it has /dev/null.
	Stdin bool `json:"stdin,omitempty"`
	// Stdout and Stderr are the files to which the output is appended. The process itself has
	// pipes. /dev/null is allowed, and [OwnersOutput] stands for the same output of the
	// supervisor's owner.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// StdoutEnd and StderrEnd are the files that get the end of an output that goes to the
	// owner, once the process has ended, or empty for none.
	StdoutEnd string `json:"stdout_end,omitempty"`
	StderrEnd string `json:"stderr_end,omitempty"`
	// Foreground gives the process the owner's stdin, stdout and stderr, and its terminal if
	// they are one. Stdin, Stdout and Stderr are then ignored.
	Foreground bool `json:"foreground,omitempty"`
	// CPUs are the processors that the process is bound to, or empty for all.
	CPUs   []int  `json:"cpus,omitempty"`
	Limits Limits `json:"limits,omitzero"`
	// LogQuota is the number of bytes that the processes of the run may write to their output
	// files here; 0 means no limit. Beyond it the process that has written most is killed or,
	// if LogDrop is set, the excess is dropped.
	LogQuota int64 `json:"log_quota,omitempty"`
	LogDrop  bool  `json:"log_drop,omitempty"`
	// Stop determines how processes that the program leaves running are stopped if it ends by
	// itself. Without a grace they are killed at once.
	Stop Stop `json:"stop,omitzero"`
	// StopGroup has signals that ask the process to end sent to its whole group at once. By
	// default only the program gets them, since it may need its helpers to save its work.
	StopGroup bool `json:"stop_group,omitempty"`
	// OOMFails has a process fail that exits with 0 if the kernel has killed others to free
	// memory while it ran; see [Exit.OOMKills].
	OOMFails bool `json:"oom_fails,omitempty"`
	// KillAt is the time at which the process is killed for running too long, in nanoseconds of
	// CLOCK_BOOTTIME; 0 means never.
	KillAt int64 `json:"kill_at"`
}

// Contact bounds the life of a process whose task may be started elsewhere: the server must
// keep answering the side for this task. Start and Renew set the deadline, and need an answer
// for that. So a side that was killed, is frozen, crashes repeatedly or cannot log in does
// not extend it.
type Contact struct {
	// Until is the time at which the process is stopped, in nanoseconds of CLOCK_BOOTTIME: a
	// fixed time after the last request that the server answered was sent. It is 0 if the
	// process needs no contact.
	Until int64 `json:"until"`
	// Signal and Grace determine that stop.
	Signal int           `json:"signal"`
	Grace  time.Duration `json:"grace"`
}

// Process is the journal's record of one process of a task.
type Process struct {
	Key runkey.Task `json:"key"`
	// Number counts the processes of a task from 0, across restarts and start-task; it
	// identifies the journal entry.
	Number int `json:"number"`
	// Launch is the launch this process was started under.
	Launch int    `json:"launch"`
	PID    int    `json:"pid"`
	LogDir string `json:"log_dir"`
	// User is the name of its user, if that is not the supervisor's own.
	User    string    `json:"user,omitempty"`
	Started time.Time `json:"started"`
	// Exit is nil while the process lives.
	Exit *Exit `json:"exit,omitempty"`
	// Granted reports whether the next process of the task may be started: the exit was
	// judged, and the task is restarted.
	Granted bool `json:"granted,omitempty"`
	// Failures is the number of processes of the launch that have failed, up to this one. It is
	// reported with the grant of the next process, and so is Note, which only the caller reads.
	Failures int    `json:"failures,omitempty"`
	Note     string `json:"note,omitempty"`
}

// Ref returns the reference to the process.
func (p Process) Ref() ProcessRef { return ProcessRef{Key: p.Key, Number: p.Number} }

// Exit describes how a process ended.
type Exit struct {
	// Code is the exit code, or -N if signal N ended the process.
	Code int `json:"code"`
	// Reason is why the supervisor, or the kernel, stopped it, or empty if it ended by itself.
	Reason Reason `json:"reason,omitempty"`
	// Detail has the numbers of [ReasonOOM] and [ReasonLogQuota], by what [ReasonShutdown] has cut
	// a grace, or the Detail of a [StopRequest].
	Detail string `json:"detail,omitempty"`
	// Sent reports whether the signal that ended it was one that a [SignalRequest] had sent.
	Sent bool `json:"sent,omitempty"`
	// Dropped is the number of bytes of its output that are not in its files: they exceeded the
	// quota, see [Command.LogDrop], or could not be written.
	Dropped int64 `json:"dropped,omitempty"`
	// Swept is the number of processes that it left behind, which were stopped after it.
	Swept int `json:"swept,omitempty"`
	// Killed is the number of these that SIGKILL ended, because they outlived the grace, or had
	// none.
	Killed int `json:"killed,omitempty"`
	// OOMKills is the number of processes that the kernel has killed to free memory while it ran.
	// OOMScope is "task" if all of them were the task's own. It is "cgroup" if they were in the
	// cgroup of the supervisor, because the task has no memory controller of its own, or "host".
	OOMKills int    `json:"oom_kills,omitempty"`
	OOMScope string `json:"oom_scope,omitempty"`
	// Failed reports whether it was known to have failed when it was stopped.
	Failed bool `json:"failed,omitempty"`
	// Lost reports whether the process ended with its host, supervisor or boot, so that its
	// exit is unknown.
	Lost bool `json:"lost,omitempty"`
	// Unkillable reports whether it was still alive some time after SIGKILL and was given up.
	Unkillable bool `json:"unkillable,omitempty"`
	// Left are the processes that were still alive then.
	Left []Survivor `json:"left,omitempty"`
	// StartError is the reason if the program could not be executed.
	StartError string    `json:"start_error,omitempty"`
	Ended      time.Time `json:"ended"`
	// BootNanos is the end on CLOCK_BOOTTIME.
	BootNanos int64 `json:"boot_ns"`
	Usage
}

// Survivor is a process that SIGKILL has not ended. Together with its start, in clock ticks since
// boot, its ID is unique.
type Survivor struct {
	PID   int    `json:"pid"`
	Ticks uint64 `json:"ticks"`
}

// Lives reports whether the process is still there.
func (s Survivor) Lives() bool {
	stat, err := proc.ReadStat(s.PID)
	return err == nil && stat.Ticks == s.Ticks && !stat.Dead()
}

// Survivors returns the processes of an ended one that are still there. e may be nil.
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

// AttachRequest announces a new commander of a task.
type AttachRequest struct {
	Key   runkey.Task
	Fence Fence
}

// AttachReply has the processes of the task, the oldest first: the first of each
// launch, and the last hundred.
type AttachReply struct{ Processes []Process }

// StartRequest starts process Number of a task. It is idempotent: if that number is
// journalled, the reply is that process.
type StartRequest struct {
	Key     runkey.Task
	Fence   Fence
	Number  int
	Command Command
	// Contact is refused if it is already over.
	Contact Contact
}

// RenewRequest extends the [Contact] of the living process of a task.
type RenewRequest struct {
	Key   runkey.Task
	Fence Fence
	Until int64
}

// ProcessRef names one process.
type ProcessRef struct {
	Key    runkey.Task
	Number int
}

// GrantRequest allows the process after Number to be started.
type GrantRequest struct {
	Key    runkey.Task
	Fence  Fence
	Number int
	// Failures and Note are stored in the process.
	Failures int
	Note     string
}

// StopAll is a request that the owner can write to the lifeline, as one line of JSON: stop
// everything in this way and end. It is for an owner whose side cannot continue, for example
// without a server.
type StopAll struct {
	Stops
	// Recorded reports whether the server knows how all runs have ended. The side then has
	// nothing to report, and is killed.
	Recorded bool `json:"recorded,omitempty"`
	// Later reports whether the request stops nothing now. Instead, when runs stop their
	// processes, these signals replace the signals that the runs request.
	Later bool `json:"later,omitempty"`
}

// Stops describe how the processes of several tasks are stopped.
type Stops struct {
	Stop
	// Tasks has the tasks that are stopped differently.
	Tasks map[string]Stop `json:"tasks,omitempty"`
}

// Stop describes how a process is stopped: a signal by number, and the time until SIGKILL.
type Stop struct {
	Signal int           `json:"signal"`
	Grace  time.Duration `json:"grace"`
}

// Except has the processes of a task stopped in another way.
func (a *Stops) Except(task string, s Stop) {
	if s == a.Stop {
		return
	}
	if a.Tasks == nil {
		a.Tasks = map[string]Stop{}
	}
	a.Tasks[task] = s
}

// of returns how the processes of a task are stopped.
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

// PortLeaseReply has the Count ports.
type PortLeaseReply struct{ Ports []int }

// ReleaseRequest ends a run on this host: its remaining processes are stopped, and its ports
// are freed. After the release, the run's processes stay readable for seven days and no new
// ones can be started.
type ReleaseRequest struct {
	Run runkey.Run
	Stops
}

// ProcessesReply has processes, by task and number.
type ProcessesReply struct{ Processes []Process }

// Limits bound the use of the host by a process and all its descendants together. 0 means no
// bound.
type Limits struct {
	Memory int64 `json:"memory,omitempty"` // bytes
	CPUs   int   `json:"cpus,omitempty"`   // full processors
	PIDs   int   `json:"pids,omitempty"`   // processes and threads
	// Rlimits are limits of setrlimit(2), which apply to each of the processes separately.
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

// UnkeptReply has pieces of outputs, in the order of each of them.
type UnkeptReply struct{ Unkept []output.Unkept }

// ControllersReply has the cgroup controllers that can limit processes here: cpu, memory and
// pids. Why is the reason if some are missing.
type ControllersReply struct {
	Controllers []string
	Why         string
}

// ClosingReply reports that the supervisor is ending. OwnerGone reports whether the reason is
// that the owner has ended or requested it ([StopAll]).
type ClosingReply struct{ OwnerGone bool }
