package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Verdict says in one word how a run ended.
type Verdict string

// The values of [Verdict]. The type of a failed run's error shows its verdict, too.
const (
	// VerdictSucceeded means that every task that counts ended well.
	VerdictSucceeded Verdict = "succeeded"
	// VerdictFailed means that a task ended badly; see [RunResult.FirstFailure].
	VerdictFailed Verdict = "failed"
	// VerdictTimedOut means that the timeout passed first, or that tasks still ran at the end
	// of the grace of a stop together.
	VerdictTimedOut Verdict = "timed-out"
	// VerdictCancelled means that a user or program stopped the run.
	VerdictCancelled Verdict = "cancelled"
	// VerdictSkipped means that the run has not begun, because an earlier run did not end as
	// its after says.
	VerdictSkipped Verdict = "skipped"
	// VerdictPreempted means that the run was stopped after a notice, and does not return to
	// the queue.
	VerdictPreempted Verdict = "preempted"
)

// Cause says why a process ended.
type Cause string

// The values of [Cause].
const (
	// CauseCompleted means that it ended by itself, with exit code 0.
	CauseCompleted Cause = "completed"
	// CauseOrigin means that it failed by itself.
	CauseOrigin Cause = "origin"
	// CauseOOM means that the kernel killed it, or one of its descendants, because they had
	// used all the memory that their limits allow; or, with on_oom "fail", to free memory,
	// though it exited with 0.
	CauseOOM Cause = "oom"
	// CauseLogQuota means that the tasks of the run had written more output on its host than
	// they may. It is not started again, since that would change nothing.
	CauseLogQuota Cause = "log-quota"
	// CauseSilence means that it was stopped because all tasks of the run on its host had been
	// silent; see on_silence.
	CauseSilence Cause = "silence"
	// CauseCollateral means that clusterrun stopped it because of another task, or because the
	// run was over.
	CauseCollateral Cause = "collateral"
	// CauseOperator means that a request ended it.
	CauseOperator Cause = "operator"
	// CauseTimeout means that the run's timeout or max_run_time passed.
	CauseTimeout Cause = "timeout"
	// CauseHostLost means that its host, or the supervisor there, died under it.
	CauseHostLost Cause = "host-lost"
	// CausePreempted means that it was stopped after a notice, or failed by itself between the
	// notice and the stop.
	CausePreempted Cause = "preempted"
)

// ByItself reports whether a process failed by itself, or was stopped for its own behavior.
// Only such a failure can be a run's root cause.
func (c Cause) ByItself() bool {
	return c == CauseOrigin || c == CauseOOM || c == CauseLogQuota || c == CauseSilence
}

// Exit is the end of one process of a task.
type Exit struct {
	// Restart is the number of the process in its task, from 0.
	Restart int `json:"restart"`
	// PID is the process ID on its host, or 0 if none was started.
	PID int `json:"pid,omitempty"`
	// ExitCode is the exit code, or -N when signal N ended the process, as
	// Python and the torch launcher write it.
	ExitCode int `json:"exit_code"`
	// Signal is the name of the signal that ended the process, such as SIGKILL.
	Signal string `json:"signal,omitempty"`
	// Cause says why the process ended.
	Cause Cause `json:"cause"`
	// Started and Ended are wall clock times of the process's host.
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// BootNanos is the time at which the process ended on the host's monotonic clock since
	// boot, in nanoseconds: it orders the exits of one host.
	BootNanos int64 `json:"boot_ns,omitempty"`
	// Message is the error that the process reported, or the last lines of its stderr. It is
	// empty after a good end.
	Message string `json:"message,omitempty"`
	// Reported reports whether Message is an error that the program itself reported before it
	// was asked to end.
	Reported bool `json:"reported,omitempty"`
	// Printed is the error in its output that ended the process, or was about to when it was
	// stopped, or nil if there is none.
	Printed *PrintedError `json:"printed,omitempty"`
	// Xid is the number of the error that NVIDIA's driver reported about a GPU before the process
	// ended, and GPUError has its words. Xid is 0 if there was none.
	Xid      int    `json:"xid,omitempty"`
	GPUError string `json:"gpu_error,omitempty"`
	// ErrorFile is the path of the error file, if the program wrote one.
	ErrorFile string `json:"error_file,omitempty"`
	// ErrorTime is the time of the error, from the file's content and modification time: a
	// process may live on for a while after the error that ends it.
	ErrorTime time.Time `json:"error_time,omitzero"`
	// TraceFile is the path, on its host, of the file of torch's Flight Recorder about the
	// process's last collectives, or empty if there is none.
	TraceFile string `json:"trace_file,omitempty"`
	// ValueFile is the path, on its host, of the JSON value that the process returned, if that
	// has more than 256 KiB. It was not read.
	ValueFile string `json:"value_file,omitempty"`
	// LogDir is the directory of this process's files on its host.
	LogDir string `json:"log_dir,omitempty"`
	// Call names the closure that the process was calling when it exited with 0, such as
	// "closure 17 of train", or [UnknownCall]. The process counts as failed then, since the
	// value is lost.
	Call string `json:"call,omitempty"`
	// DroppedBytes is the number of bytes of its output that were dropped (see logs.on_full),
	// or could not be written, for example because the disk was full.
	DroppedBytes int64 `json:"dropped_bytes,omitempty"`
	// SameErrors is the number of times in a row that this error had come without progress, if the
	// task or the group was not started again for that reason; see give_up_on_same_error.
	SameErrors int `json:"same_errors,omitempty"`
	// OOMKills is the number of processes that the kernel has killed to free memory while the
	// process ran.
	OOMKills int `json:"oom_kills,omitempty"`
	// OOMScope is "task" if all of them were the task's own. It is "cgroup" if they were in the
	// cgroup of the host worker, because the task has no memory controller of its own, or "host".
	OOMScope string `json:"oom_scope,omitempty"`
	// LeftBehind is the number of processes that the program left running when it ended by
	// itself, which did not end within the grace of its task (stop.grace) and were killed.
	LeftBehind int `json:"left_behind,omitempty"`
	// Unkillable reports whether the process was still there a while after SIGKILL.
	Unkillable bool `json:"unkillable,omitempty"`
	// Steps is the time that the process took for a step. It is nil if the process has reported
	// none, or if the time is not known.
	Steps *StepTime `json:"steps,omitempty"`
	// LastStep is the progress that the process last reported, or nil if it has reported none.
	LastStep *float64 `json:"last_step,omitempty"`
	// Usage is the usage of the process and its descendants.
	Usage Usage `json:"usage,omitzero"`
}

// PrintedError is an error that a process printed, such as a traceback.
type PrintedError struct {
	// Kind is the language or the library that printed it, such as "python" or "nccl".
	Kind string `json:"kind"`
	// Line is the error in one line of at most 240 bytes, such as "ValueError: shard 3 is corrupt".
	Line string `json:"line"`
	// Place is the place of the error, such as "train.py:88", or empty if that is not known.
	Place string `json:"place,omitempty"`
	// LostPeer reports whether the error speaks of the end of another process.
	LostPeer bool `json:"lost_peer,omitempty"`
	// Survivable reports whether programs usually continue after such an error: it was logged, or
	// is a warning.
	Survivable bool `json:"survivable,omitempty"`
	// After and By bound the time at which it was printed, by the wall clock of the host. After
	// is zero if that is not known.
	After time.Time `json:"after,omitzero"`
	By    time.Time `json:"by,omitzero"`
}

// Own reports whether it is an error of the process itself, after which programs end. p may be nil.
func (p *PrintedError) Own() bool { return p != nil && !p.LostPeer && !p.Survivable }

// String returns the line and the place.
func (p *PrintedError) String() string {
	if p.Place == "" {
		return p.Line
	}
	return p.Line + " (" + p.Place + ")"
}

// errorTimeUnit is the coarsest resolution of the timestamp in an error file.
const errorTimeUnit = time.Second

// ErrorAge returns how long before its end the process reported its error, by the wall
// clock of its host. A time after the end of the process or before its start is not
// believed.
func (e Exit) ErrorAge() (age time.Duration, ok bool) {
	if e.ErrorTime.IsZero() || e.Ended.IsZero() {
		return 0, false
	}
	age = e.Ended.Sub(e.ErrorTime)
	if !e.Started.IsZero() {
		lived := e.Ended.Sub(e.Started)
		if age > lived+errorTimeUnit {
			return 0, false
		}
		age = min(age, lived)
	}
	return age, age >= 0
}

// FailedNanos returns when the process failed, in nanoseconds since its host booted; 0 if
// that is not known. It is the time of the error if the program reported one: the
// process that raised first may die last, because it waits for its peers on its way
// out.
func (e Exit) FailedNanos() int64 {
	if before, ok := e.ErrorAge(); ok && e.BootNanos > before.Nanoseconds() {
		return e.BootNanos - before.Nanoseconds()
	}
	return e.BootNanos
}

// Failed returns when the process failed, by the wall clock of its host: when the program reported
// its error, or else the end.
func (e Exit) Failed() time.Time {
	if !e.ErrorTime.IsZero() {
		return e.ErrorTime
	}
	return e.Ended
}

// LostPeer reports whether the process ended because another process did, or the connection to
// it: its error says so, or it wrote to one that was gone.
func (e Exit) LostPeer() bool {
	if e.Printed != nil {
		return e.Printed.LostPeer
	}
	return e.Cause == CauseOrigin && !e.Reported && e.Signal == "SIGPIPE"
}

// OK reports whether the process ended by itself with exit code 0.
func (e Exit) OK() bool { return e.Cause == CauseCompleted }

// Bare returns the exit without texts, or nil if e is nil.
func (e *Exit) Bare() *Exit {
	if e == nil {
		return nil
	}
	return &Exit{Restart: e.Restart, ExitCode: e.ExitCode, Signal: e.Signal, Cause: e.Cause}
}

// TaskResult is the end of one task.
type TaskResult struct {
	Name  string `json:"name"` // such as worker-3
	Type  string `json:"type"`
	Index int    `json:"index"`
	Rank  int    `json:"rank"`
	Host  string `json:"host,omitempty"`
	// Exit is the last process's.
	Exit *Exit `json:"exit,omitempty"`
	// Exits are the exits of all processes of the task, the oldest first, if there was more
	// than one; the oldest are left out past a bound.
	Exits []Exit `json:"exits,omitempty"`
	// Restarts counts the processes after the first.
	Restarts int `json:"restarts,omitempty"`
	// Value is the JSON value that the last process returned. It is nil if there is no value,
	// if the value is in Exit.ValueFile, or if the result has no room for it, as its message
	// says. Values that JSON cannot express are objects with [NumberKey] or [BytesKey].
	Value json.RawMessage `json:"value,omitempty"`
	// Failed reports whether the task's end counts as a failure of the run.
	Failed bool `json:"failed,omitempty"`
	// WasRestarting reports whether it had failed and would have been started again, had the run
	// not ended.
	WasRestarting bool `json:"was_restarting,omitempty"`
	// StacksFile is the path, on the task's host, of the stacks that were
	// captured before the task was stopped.
	StacksFile string `json:"stacks_file,omitempty"`
}

// EndedBy says which event ended a run.
type EndedBy string

// The values of [EndedBy]. It is empty if every task ended by itself.
const (
	EndedByChief      EndedBy = "chief"         // the chief's final exit
	EndedByFailure    EndedBy = "failure"       // a task's final failure, with on_failure stop
	EndedByTimeout    EndedBy = "timeout"       // timeout passed
	EndedByMaxRunTime EndedBy = "max-run-time"  // max_run_time passed
	EndedByTogether   EndedBy = "stop-together" // a request that all tasks stop together
	EndedByCancel     EndedBy = "cancel"        // a cancellation, or terminate-all
	EndedByPlacement  EndedBy = "placement"     // no host took the tasks
	EndedByAfter      EndedBy = "after"         // the end of an earlier run
	EndedByNotice     EndedBy = "notice"        // the deadline of a notice
)

// Evidence says why a process that did not fail by itself counts as the root cause.
type Evidence string

// The values of [Evidence].
const (
	// EvidencePrinted means that it had printed its error before it was stopped.
	EvidencePrinted Evidence = "printed"
	// EvidenceStacks means that the other tasks waited for it, according to the stacks.
	EvidenceStacks Evidence = "stacks"
	// EvidenceRequest means that it asked all tasks to stop, because of an error.
	EvidenceRequest Evidence = "request"
)

// Failure is the failure of a process, with its task.
type Failure struct {
	Task string `json:"task"`
	Rank int    `json:"rank"`
	Host string `json:"host,omitempty"`
	Exit
	// Evidence is empty if the process failed by itself.
	Evidence Evidence `json:"evidence,omitempty"`
	// Restarts is the number of earlier restarts of its task or, if OfGroup is set, of the
	// group. UsedUp reports whether max_restarts allows no more.
	Restarts int  `json:"restarts,omitempty"`
	OfGroup  bool `json:"of_group,omitempty"`
	UsedUp   bool `json:"used_up,omitempty"`
}

// LeftOut describes the parts that a result has no room for, or cannot hold. Its lists have the
// first 100 names.
type LeftOut struct {
	// Tasks is the number of missing tasks. Completed tasks are left out first, and the last tasks
	// before others.
	Tasks int `json:"tasks,omitempty"`
	// Values are tasks whose values are too large together. Each is in result.json of the log
	// directory of its process.
	Values []string `json:"values,omitempty"`
	// Invalid are tasks whose values are not JSON.
	Invalid []string `json:"invalid,omitempty"`
}

// maxLeftOut bounds the lists of [LeftOut].
const maxLeftOut = 100

// WithoutValue notes that the value of a task is left out.
func (r *RunResult) WithoutValue(task string) {
	if r.LeftOut == nil {
		r.LeftOut = &LeftOut{}
	}
	if len(r.LeftOut.Values) < maxLeftOut {
		r.LeftOut.Values = append(r.LeftOut.Values, task)
	}
}

// WithoutInvalid notes that the value of a task is left out because it is not JSON.
func (r *RunResult) WithoutInvalid(task string) {
	if r.LeftOut == nil {
		r.LeftOut = &LeftOut{}
	}
	if len(r.LeftOut.Invalid) < maxLeftOut {
		r.LeftOut.Invalid = append(r.LeftOut.Invalid, task)
	}
}

// RunResult is the end of a run.
type RunResult struct {
	Verdict Verdict `json:"verdict"`
	// Message explains the end in one sentence; see package outcome, which makes it of the other
	// fields. It is empty on success.
	Message string `json:"message,omitempty"`
	// ErrorType is the type of the run's error; empty on success.
	ErrorType string `json:"error_type,omitempty"`
	// ExitCode is the exit code of `clusterrun run` and `clusterrun wait`.
	ExitCode int     `json:"exit_code"`
	EndedBy  EndedBy `json:"ended_by,omitempty"`
	// Reason is why the run was cancelled or could not be placed.
	Reason string `json:"reason,omitempty"`
	// Limit is the timeout or the max_run_time that passed.
	Limit *Duration `json:"limit,omitempty"`
	// NotStarted reports whether the run ended before any task of its last launch was started.
	NotStarted bool `json:"not_started,omitempty"`
	// FirstFailure is the root cause: the earliest process that failed by itself, or that is known
	// by [Failure.Evidence].
	FirstFailure *Failure `json:"first_failure,omitempty"`
	// FirstReport is the first failure that a program reported, if that is not FirstFailure.
	FirstReport *Failure `json:"first_report,omitempty"`
	// FirstError is the process that printed an error of its own before the process of
	// FirstFailure ended, if FirstFailure does not say what went wrong.
	FirstError *Failure `json:"first_error,omitempty"`
	// DoneBefore are the last tasks that had ended well, or were about to, when FirstFailure's
	// process lost its peer, if no other process had printed an error of its own; 4 at most.
	DoneBefore []TaskResult `json:"done_before,omitempty"`
	// FirstEnded is the task whose process ended first, if it only lost its peer, FirstFailure's.
	FirstEnded string `json:"first_ended,omitempty"`
	// LivedOn are tasks that did not wait for others, and that lived on for error_grace after
	// FirstFailure's process lost its peer, until they were stopped.
	LivedOn []string `json:"lived_on,omitempty"`
	// OperatorError is the error with which an operator stopped the run, if no failure came before.
	OperatorError *TogetherError `json:"operator_error,omitempty"`
	// Stopping is the state of the stop, if the tasks stopped together.
	Stopping *Stopping `json:"stopping,omitempty"`
	// Stragglers are the tasks that still ran when the time for that was over, in rank order.
	// IgnoredStragglers reports whether they do not count as a failure.
	Stragglers        []string `json:"stragglers,omitempty"`
	IgnoredStragglers bool     `json:"ignored_stragglers,omitempty"`
	// Stacks summarizes the last capture of the tasks' stacks, before any was stopped. Files
	// with all stacks are in Tasks.
	Stacks *stacktree.Findings `json:"stacks,omitempty"`
	// Tasks are in rank order, then those added while the run lived.
	Tasks []TaskResult `json:"tasks"`
	// Generation is the number of the last launch of the group, from 0, and so the number of
	// restarts of the whole group.
	Generation int `json:"generation,omitempty"`
	// Preemptions counts the returns to the queue after a notice.
	Preemptions int `json:"preemptions,omitempty"`
	// GroupRestarts are the last of the Generation restarts of the whole group, the oldest
	// first.
	GroupRestarts []GroupRestart `json:"group_restarts,omitempty"`
	// Slow are the tasks and hosts whose last processes took longer for a step than the others,
	// the slowest first; 8 at most.
	Slow []Slow `json:"slow,omitempty"`
	// Usage is the usage of all processes of all tasks, restarts included, on the hosts that
	// have answered.
	Usage Usage `json:"usage,omitzero"`
	// Standstill is set if the run has ended because restarts did not lead further.
	Standstill *Standstill `json:"standstill,omitempty"`
	// SharedMemory has the memory in /dev/shm that ended processes hold, of the first 20 hosts.
	SharedMemory []SharedMemory `json:"shared_memory,omitempty"`
	// NotReleased is why hosts could not be given back, a line each.
	NotReleased []string `json:"not_released,omitempty"`
	// NoticeFailed is why the notice of the end was not sent.
	NoticeFailed string   `json:"notice_failed,omitempty"`
	LeftOut      *LeftOut `json:"left_out,omitempty"`
	// Output holds the last lines of the output if the spec asks for it.
	Output []string `json:"output,omitempty"`
	// Sweep is set for a sweep, which has trials and no tasks.
	Sweep *SweepStatus `json:"sweep,omitempty"`
}

// SharedMemory is the memory in /dev/shm that ended processes of a run still hold on a host.
type SharedMemory struct {
	Host string `json:"host"`
	// Left is the memory in bytes that the files have that no process uses, and Files their number.
	Left  int64 `json:"left"`
	Files int   `json:"files"`
	// Size is the size of all shared memory in bytes.
	Size int64 `json:"size"`
}

// Standstill says that restarts of the group did not lead further.
type Standstill struct {
	// Restarts is the number of restarts in a row that reached no step beyond LastStep.
	Restarts int `json:"restarts"`
	// LastStep is the furthest step that any task has reported, or nil if none has.
	LastStep *float64 `json:"last_step,omitempty"`
}

// Cause returns why the run ended: the cause of its root failure, if there is one. It is empty
// if no process caused the end, for example if the run got no place.
func (r *RunResult) Cause() Cause {
	switch {
	case r.Verdict == VerdictTimedOut:
		return CauseTimeout
	case r.Verdict == VerdictPreempted:
		return CausePreempted
	case r.FirstFailure != nil:
		return r.FirstFailure.Cause
	case r.Verdict == VerdictSucceeded:
		return CauseCompleted
	case r.Verdict == VerdictCancelled, r.ErrorType == ErrSubprocess: // asked to stop, by an operator
		return CauseOperator
	case r.ErrorType == ErrUnexpectedExit: // max_run_time passed
		return CauseTimeout
	}
	return ""
}

// Causes are all values of [Cause], each with its meaning in a few words and in a line.
var Causes = []struct {
	Cause   Cause
	Words   string
	Meaning string
}{
	{CauseCompleted, "completed", "it exited with 0, by itself"},
	{CauseOrigin, "failed by itself", "it failed by itself: another exit code, or a signal that was not to stop it"},
	{CauseOOM, "out of memory", "the kernel killed it at the memory limit, or its processes (on_oom)"},
	{CauseLogQuota, "too much output", "it was stopped because the run had reached its log quota on that host"},
	{CauseSilence, "silent", "it was stopped because the run was silent on that host (on_silence)"},
	{CauseCollateral, "stopped in order", "clusterrun stopped it because another task had failed or the run was over"},
	{CauseOperator, "stopped on request", "it was stopped on request"},
	{CauseTimeout, "out of time", "it was stopped because timeout or max_run_time had passed"},
	{CausePreempted, "preempted", "it was stopped after a notice, or failed by itself in between"},
	{CauseHostLost, "lost with its host", "it ended with its host or the supervisor there, or was stopped by that"},
}

// Words returns the meaning of the cause in a few words.
func (c Cause) Words() string {
	for _, known := range Causes {
		if known.Cause == c {
			return known.Words
		}
	}
	return string(c)
}

// CausesText returns a line for each of [Causes], for a help text.
func CausesText() string {
	var b strings.Builder
	for _, c := range Causes {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.Cause, c.Meaning)
	}
	return b.String()
}

// Values that JSON cannot express are objects with one of these keys, in the values that tasks
// return and in the arguments and values of closures. The package for Python writes and reads
// them.
const (
	// NumberKey is the key of "NaN", "Infinity" or "-Infinity".
	NumberKey = "$clusterrun.number"
	// BytesKey is the key of bytes in base64.
	BytesKey = "$clusterrun.bytes"
)

// numbers turns the objects that stand for numbers into those numbers. No string of JSON can
// contain such an object: its quotes are escaped there.
var numbers = func() *strings.Replacer {
	var pairs []string
	for _, number := range []string{"NaN", "Infinity", "-Infinity"} {
		pairs = append(pairs, `{"`+NumberKey+`":"`+number+`"}`, number)
	}
	return strings.NewReplacer(pairs...)
}()

// FormatValue returns a value on one line, in which NaN and the infinities are bare. That is not
// JSON.
func FormatValue(value json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return string(value)
	}
	return numbers.Replace(compact.String())
}
