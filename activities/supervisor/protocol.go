package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/hostuser"
	"github.com/clusterrun/clusterrun/activities/runkey"
)

// Fence orders the commanders of a task: by launch (start-task), within a launch by the
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

// Reason is why the supervisor stopped a process.
type Reason string

// The values of [Reason]. It is empty if the process ended by itself.
const (
	ReasonNone Reason = ""
	// ReasonCollateral: another task's end, or the run's, made this one pointless.
	ReasonCollateral Reason = "collateral"
	// ReasonTerminate and ReasonRestart: an operator asked.
	ReasonTerminate Reason = "terminate"
	ReasonRestart   Reason = "restart"
	// ReasonTimeout: the run's timeout passed.
	ReasonTimeout Reason = "timeout"
	// ReasonMaxRunTime: KillAt of the command passed.
	ReasonMaxRunTime Reason = "max-run-time"
	// ReasonCutOff: the [Contact] that the process needs was not renewed in time.
	ReasonCutOff Reason = "cut-off"
	// ReasonShutdown: the supervisor was asked to end, or its owner died.
	ReasonShutdown Reason = "shutdown"
	// ReasonOOM: the kernel killed it because it had reached its [Limits.Memory].
	ReasonOOM Reason = "oom"
	// ReasonSilence: it was silent for too long.
	ReasonSilence Reason = "silence"
	// ReasonLogQuota: it wrote more than [Command.LogQuota].
	ReasonLogQuota Reason = "log-quota"
)

// OwnersOutput stands for the output of the supervisor's owner, which it has for
// a run in the foreground ([Config.Owner]).
const OwnersOutput = "owner"

// The values of [Command.Stdin].
const (
	// OwnersInput is the owner's stdin itself: what one process reads no other does.
	OwnersInput = "owner"
	// OwnersFile is the file that the owner's stdin is, opened again for each process.
	OwnersFile = "owner's file"
)

// Command is what to execute. Its output goes directly to files, not through the
// supervisor.
type Command struct {
	Path string   `json:"path"` // an absolute path: nothing is looked up
	Args []string `json:"args"` // argv, the program's name included
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	// User is whom the process runs as; nil: the supervisor's own. What the supervisor does
	// with the directories and files below it does as that user.
	User *hostuser.User `json:"user,omitempty"`
	// LogDir is made, with its parents, before the files are opened. It is below LogRoot,
	// which is not left, whatever links lead out of it; empty: nothing is known of it.
	LogDir  string `json:"log_dir"`
	LogRoot string `json:"log_root,omitempty"`
	// LogMode is that of the directories that are made; files are not executable. Default:
	// nobody but the user may read them.
	LogMode fs.FileMode `json:"log_mode,omitempty"`
	// Stdin is what the process reads: [OwnersInput], [OwnersFile], or if empty /dev/null.
	Stdin string `json:"stdin,omitempty"`
	// Stdout and Stderr are opened for appending; /dev/null is allowed, and
	// [OwnersOutput] stands for the same output of the supervisor's owner.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// Foreground gives the process the owner's stdin, stdout and stderr, and its
	// terminal if they are one. Stdin, Stdout and Stderr are ignored then.
	Foreground bool `json:"foreground,omitempty"`
	// CPUs are the processors that the process is bound to; empty for all.
	CPUs   []int  `json:"cpus,omitempty"`
	Limits Limits `json:"limits,omitzero"`
	// LogQuota is how many bytes the processes of the run may write to their output files
	// here; 0: any number. What is more ends the process that has written most, or is
	// dropped where LogDrop is set.
	LogQuota int64 `json:"log_quota,omitempty"`
	LogDrop  bool  `json:"log_drop,omitempty"`
	// KillAt is when the process is killed for running too long, in
	// nanoseconds of CLOCK_BOOTTIME. 0: never.
	KillAt int64 `json:"kill_at"`
}

// Contact bounds the life of a process whose task may be started elsewhere: the server must
// keep answering the side for this task. Start and Renew set the deadline, and need an
// answer for that. So a side that was killed, is frozen, crashes again and again or cannot
// log in does not extend it.
type Contact struct {
	// Until is when the process is stopped, in nanoseconds of CLOCK_BOOTTIME: a fixed time
	// after the request was sent that the server answered last. 0: it needs no contact.
	Until int64 `json:"until"`
	// Signal and Grace are how it is stopped.
	Signal int           `json:"signal"`
	Grace  time.Duration `json:"grace"`
}

// Process is one process of a task, as the journal has it.
type Process struct {
	Key runkey.Task `json:"key"`
	// Number counts the processes of a task from 0, over restarts, start-task
	// and all; it names the journal entry.
	Number int `json:"number"`
	// Launch is the launch this process was started under.
	Launch int    `json:"launch"`
	PID    int    `json:"pid"`
	LogDir string `json:"log_dir"`
	// User is the name of whom it runs as, where that is not the supervisor's own.
	User    string    `json:"user,omitempty"`
	Started time.Time `json:"started"`
	// Exit is nil while the process lives.
	Exit *Exit `json:"exit,omitempty"`
	// Granted reports whether the next process of the task may be started: the exit
	// was judged, and the task is restarted.
	Granted bool `json:"granted,omitempty"`
	// Failures is the number of processes of the launch that have failed, up to this
	// one, as reported with the grant of the next one.
	Failures int `json:"failures,omitempty"`
}

// Ref names the process.
func (p Process) Ref() ProcessRef { return ProcessRef{Key: p.Key, Number: p.Number} }

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code, or -N if signal N ended the process.
	Code int `json:"code"`
	// Reason is why the supervisor, or the kernel, stopped it; empty if it ended by itself.
	Reason Reason `json:"reason,omitempty"`
	// Detail has the numbers of [ReasonOOM] and [ReasonLogQuota], or is that of [StopRequest].
	Detail string `json:"detail,omitempty"`
	// Dropped is how many bytes of its output were dropped; see [Command.LogDrop].
	Dropped int64 `json:"dropped,omitempty"`
	// Swept is how many processes it had left behind, which were killed after it.
	Swept int `json:"swept,omitempty"`
	// Failed reports whether it was known to have failed when it was stopped.
	Failed bool `json:"failed,omitempty"`
	// Lost reports whether the process ended with its host, supervisor or boot, so that
	// its exit is not known.
	Lost bool `json:"lost,omitempty"`
	// Unkillable reports whether it was still alive a bound after SIGKILL and was given
	// up.
	Unkillable bool `json:"unkillable,omitempty"`
	// StartError: the program could not be executed, and why.
	StartError string    `json:"start_error,omitempty"`
	Ended      time.Time `json:"ended"`
	// BootNanos is the end on CLOCK_BOOTTIME.
	BootNanos int64 `json:"boot_ns"`
	Usage
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
	// Failures becomes that of the process.
	Failures int
}

// StopRequest asks living processes of a run to end: Signal to the group, and
// SIGKILL after Grace. A second request may shorten the first one's grace but
// never lengthens it, and never changes its reason. The reply comes at once;
// use Wait for the end.
type StopRequest struct {
	Run runkey.Run
	// Tasks limits the request to the living processes of these tasks, in Generation.
	// Nil means every task of the run.
	Tasks      []string
	Generation int
	// Processes, when set, limits the request to these very processes instead. One
	// that has ended is no reason to stop its successor.
	Processes []ProcessRef
	// Signal is the number of the signal. SIGKILL needs no grace.
	Signal int
	Grace  time.Duration
	Reason Reason
	// Detail is recorded in the exits of the processes that this request stops first.
	Detail string
	// Failed is recorded in the exits of the processes that this request stops first:
	// they have failed but not ended yet.
	Failed bool
	// Fence, when set, must not be older than the task's in Generation, to which
	// it limits the request: attempts are counted anew in each.
	Fence *Fence
}

// StopAll is a request that the owner can write to the lifeline, as one line of JSON: stop
// everything in this way and end. It is for an owner whose side cannot go on, for example
// without a server.
type StopAll struct {
	Stop
	// Tasks are those that are to be stopped in another way.
	Tasks map[string]Stop `json:"tasks,omitempty"`
	// Recorded reports whether the server knows how all runs have ended. The side has
	// nothing to say then, and is killed.
	Recorded bool `json:"recorded,omitempty"`
	// Later reports whether nothing is to be stopped now, nor to end: only when runs stop their
	// processes, these signals are sent in place of those that they ask for.
	Later bool `json:"later,omitempty"`
}

// Stop is how a process is asked to end: a signal by number, and the time until
// SIGKILL.
type Stop struct {
	Signal int           `json:"signal"`
	Grace  time.Duration `json:"grace"`
}

// of returns how the processes of a task are stopped.
func (a StopAll) of(task string) Stop {
	if s, ok := a.Tasks[task]; ok {
		return s
	}
	return a.Stop
}

// longest returns the longest grace.
func (a StopAll) longest() time.Duration {
	grace := a.Grace
	for _, s := range a.Tasks {
		grace = max(grace, s.Grace)
	}
	return grace
}

// check refuses what is no signal.
func (a StopAll) check() error {
	err := checkSignal(a.Signal)
	for _, s := range a.Tasks {
		err = errors.Join(err, checkSignal(s.Signal))
	}
	return err
}

// SignalRequest sends one signal to the groups of the named tasks of a generation.
type SignalRequest struct {
	Run        runkey.Run
	Tasks      []string
	Generation int
	Signal     int
}

// TasksReply names the tasks a request reached.
type TasksReply struct{ Tasks []string }

// PortLeaseRequest leases ports for a run. It is idempotent by run, generation and group: a
// repeated request returns the same ports, and leases them again if a new supervisor does
// not hold them.
type PortLeaseRequest struct {
	Run        runkey.Run
	Generation int
	// Group tells the leases of one generation apart.
	Group int
	// Count is how many ports of any number are wanted.
	Count int
	// Ports are wanted by number, by these Tasks. The request fails if one is taken, and
	// with ErrPortShared, for good, if another task of the run has it.
	Ports []int
	Tasks []string
	// Avoid are ports that the run wants by number in any of its leases.
	Avoid []int
	// Store is where a store for torch is served while the ports are leased, as "host:port";
	// port 0 is the first of the Count ports. Empty: there is none. Each generation has
	// another.
	Store string
}

// PortLeaseReply has the Count ports.
type PortLeaseReply struct{ Ports []int }

// ReleaseRequest ends a run on this host: what is left is stopped, ports are
// freed. Once released, the run's processes stay readable for seven days and
// no new one can be started.
type ReleaseRequest struct {
	Run    runkey.Run
	Signal int
	Grace  time.Duration
}

// ProcessesReply has processes, by task and number.
type ProcessesReply struct{ Processes []Process }

// Limits bound what a process and its descendants use of the host, all of them together.
// 0: no bound.
type Limits struct {
	Memory int64 `json:"memory,omitempty"` // bytes
	CPUs   int   `json:"cpus,omitempty"`   // full processors
	PIDs   int   `json:"pids,omitempty"`   // processes and threads
	// Rlimits are those of setrlimit(2), which each of the processes has for itself.
	Rlimits []Rlimit `json:"rlimits,omitempty"`
}

// Rlimit is a limit of setrlimit(2), soft and hard.
type Rlimit struct {
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// Controllers returns those of cgroups that the limits need.
func (l Limits) Controllers() (needed []string) {
	for name, n := range map[string]int64{"cpu": int64(l.CPUs), "memory": l.Memory, "pids": int64(l.PIDs)} {
		if n > 0 {
			needed = append(needed, name)
		}
	}
	slices.Sort(needed)
	return needed
}

// ControllersReply has the controllers of cgroups that can limit processes here: cpu, memory
// and pids. Why says why not all of them can.
type ControllersReply struct {
	Controllers []string
	Why         string
}

// ClosingReply reports that the supervisor is ending. OwnerGone reports whether that is
// because the owner has ended or requested it ([StopAll]).
type ClosingReply struct{ OwnerGone bool }
