package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Verdict is a run's outcome, in one word.
type Verdict string

// The values of [Verdict]. The type of a failed run's error also shows its verdict.
const (
	// VerdictSucceeded means that every task that counts succeeded.
	VerdictSucceeded Verdict = "succeeded"
	// VerdictFailed means that a task failed; see [RunResult.FirstFailure].
	VerdictFailed Verdict = "failed"
	// VerdictTimedOut means that the timeout passed first, or that tasks were still running when
	// the grace of a stop together expired.
	VerdictTimedOut Verdict = "timed-out"
	// VerdictCancelled means that a user or program stopped the run.
	VerdictCancelled Verdict = "cancelled"
	// VerdictSkipped means that the run did not start, because an earlier run did not end as
	// required by after.
	VerdictSkipped Verdict = "skipped"
	// VerdictPreempted means that the run was stopped after a notice, and does not return to the
	// queue.
	VerdictPreempted Verdict = "preempted"
)

// Cause is the reason why a process ended.
type Cause string

// The values of [Cause].
const (
	// CauseCompleted means that it exited by itself, with code 0.
	CauseCompleted Cause = "completed"
	// CauseOrigin means that it failed by itself.
	CauseOrigin Cause = "origin"
	// CauseOOM means that the kernel killed it or one of its descendants because they used all
	// the memory that their limits allow. With on_oom "fail", it also means that the kernel
	// killed a descendant to free memory, although the process exited with 0.
	CauseOOM Cause = "oom"
	// CauseLogQuota means that the run's tasks exceeded the output quota on its host. It does not
	// restart, since that would change nothing.
	CauseLogQuota Cause = "log-quota"
	// CauseSilence means that it was stopped because all tasks of the run on its host were
	// silent; see on_silence.
	CauseSilence Cause = "silence"
	// CauseCollateral means that clusterrun stopped it because of another task, or because the
	// run was over.
	CauseCollateral Cause = "collateral"
	// CauseOperator means that it was ended on request.
	CauseOperator Cause = "operator"
	// CauseTimeout means that the run's timeout or max_run_time passed.
	CauseTimeout Cause = "timeout"
	// CauseHostLost means that it died with its host or supervisor.
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

// Exit describes how one process of a task ended.
type Exit struct {
	// Restart is the number of the process within its task, from 0.
	Restart int `json:"restart"`
	// PID is the process ID on its host, or 0 if none was started.
	PID int `json:"pid,omitempty"`
	// ExitCode is the exit code, or -N if signal N killed the process, as in Python and torchrun.
	ExitCode int `json:"exit_code"`
	// Signal is the signal that killed the process, such as SIGKILL.
	Signal string `json:"signal,omitempty"`
	// Cause is the reason why the process ended.
	Cause Cause `json:"cause"`
	// Started and Ended are wall clock times of the host.
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// BootNanos is when the process ended, in nanoseconds on the host's monotonic clock since
	// boot. It orders the exits of one host.
	BootNanos int64 `json:"boot_ns,omitempty"`
	// Message is the error that the process reported, or the last lines of its stderr. It is
	// empty on success.
	Message string `json:"message,omitempty"`
	// Reported reports whether the program itself reported the error in Message before it was
	// asked to end.
	Reported bool `json:"reported,omitempty"`
	// Printed is the error in the output that ended the process, or was about to when it was
	// stopped. It may be nil.
	Printed *PrintedError `json:"printed,omitempty"`
	// Xid is the number of a GPU error that NVIDIA's driver reported before the process ended, or
	// 0. GPUError is its message.
	Xid      int    `json:"xid,omitempty"`
	GPUError string `json:"gpu_error,omitempty"`
	// ErrorFile is the error file's path, if the program wrote one.
	ErrorFile string `json:"error_file,omitempty"`
	// ErrorTime is the time of the error, from the file's content and modification time. A
	// process may live on for a while after a fatal error.
	ErrorTime time.Time `json:"error_time,omitzero"`
	// TraceFile is the path of torch's Flight Recorder file about the last collectives, on the
	// process's host, or empty.
	TraceFile string `json:"trace_file,omitempty"`
	// ValueFile is the path, on the host, of the JSON value that the process returned if it is
	// larger than 256 KiB. It was not read.
	ValueFile string `json:"value_file,omitempty"`
	// LogDir is the process's directory on its host.
	LogDir string `json:"log_dir,omitempty"`
	// DroppedBytes is the number of output bytes that were dropped (see logs.on_full), or could
	// not be written, for example because the disk was full.
	DroppedBytes int64 `json:"dropped_bytes,omitempty"`
	// SameErrors is how often this error occurred in a row without progress, if that kept the task or
	// the group from restarting; see give_up_on_same_error.
	SameErrors int `json:"same_errors,omitempty"`
	// OOMKills is the number of processes that the kernel killed to free memory while the process
	// ran.
	OOMKills int `json:"oom_kills,omitempty"`
	// OOMScope is "task" if all were the task's own. It is "cgroup" if they were in the host
	// worker's cgroup, because the task has no memory controller, or "host".
	OOMScope string `json:"oom_scope,omitempty"`
	// LeftBehind is the number of processes that the program left running when it exited by
	// itself, and that were killed after its task's grace (stop.grace).
	LeftBehind int `json:"left_behind,omitempty"`
	// Unkillable reports whether the process outlived SIGKILL for a while.
	Unkillable bool `json:"unkillable,omitempty"`
	// Steps is the process's step time, or nil if it is unknown or no steps were reported.
	Steps *StepTime `json:"steps,omitempty"`
	// LastStep is the progress that the process last reported, or nil.
	LastStep *float64 `json:"last_step,omitempty"`
	// Metrics is what the process last reported with its progress: numbers by name.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Usage is the resource usage of the process and its descendants.
	Usage Usage `json:"usage,omitzero"`
}

// PrintedError is an error that a process printed, such as a traceback.
type PrintedError struct {
	// Kind is the language or library that printed the error, such as "python" or "nccl".
	Kind string `json:"kind"`
	// Line is the error in one line of at most 240 bytes, such as "ValueError: shard 3 is
	// corrupt".
	Line string `json:"line"`
	// Place is the error's location, such as "train.py:88", or empty if it is unknown.
	Place string `json:"place,omitempty"`
	// LostPeer reports whether the error is about the loss of another process.
	LostPeer bool `json:"lost_peer,omitempty"`
	// Survivable reports whether programs usually continue after such an error, because it was
	// logged or is a warning.
	Survivable bool `json:"survivable,omitempty"`
	// The error was printed between After and By, according to the host's wall clock. After is zero
	// if unknown.
	After time.Time `json:"after,omitzero"`
	By    time.Time `json:"by,omitzero"`
}

// Own reports whether it is a fatal error of the process itself. p may be nil.
func (p *PrintedError) Own() bool { return p != nil && !p.LostPeer && !p.Survivable }

// String returns the line and the place.
func (p *PrintedError) String() string {
	if p.Place == "" {
		return p.Line
	}
	return p.Line + " (" + p.Place + ")"
}

// errorTimeUnit is the coarsest resolution of timestamps in error files.
const errorTimeUnit = time.Second

// ErrorAge returns how long before its end the process reported its error, by the host's wall
// clock. A time after the end or before the start of the process is ignored.
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

// FailedNanos returns when the process failed, in nanoseconds since its host booted, or 0 if
// unknown. It is the error's time if the program reported an error, because the process that raised
// first may die last, after waiting for its peers on its way out.
func (e Exit) FailedNanos() int64 {
	if before, ok := e.ErrorAge(); ok && e.BootNanos > before.Nanoseconds() {
		return e.BootNanos - before.Nanoseconds()
	}
	return e.BootNanos
}

// Failed returns when the process failed, by the host's wall clock: when the program reported its
// error, or else when the process ended.
func (e Exit) Failed() time.Time {
	if !e.ErrorTime.IsZero() {
		return e.ErrorTime
	}
	return e.Ended
}

// LostPeer reports whether the process exited because another process, or the connection to it, was
// lost, according to its error or because it wrote to a closed connection.
func (e Exit) LostPeer() bool {
	if e.Printed != nil {
		return e.Printed.LostPeer
	}
	return e.Cause == CauseOrigin && !e.Reported && e.Signal == "SIGPIPE"
}

// OK reports whether the process exited unasked with code 0.
func (e Exit) OK() bool { return e.Cause == CauseCompleted }

// Bare returns the exit without messages, or nil if e is nil.
func (e *Exit) Bare() *Exit {
	if e == nil {
		return nil
	}
	return &Exit{Restart: e.Restart, ExitCode: e.ExitCode, Signal: e.Signal, Cause: e.Cause}
}

// TaskResult describes how a task ended.
type TaskResult struct {
	Name  string `json:"name"` // such as worker-3
	Type  string `json:"type"`
	Index int    `json:"index"`
	Rank  int    `json:"rank"`
	Host  string `json:"host,omitempty"`
	// Exit is the last process's exit. It is nil if the task was launched and no process of
	// that launch began.
	Exit *Exit `json:"exit,omitempty"`
	// Exits are all processes' exits, oldest first, unless Exit is the only one. The oldest are
	// dropped beyond a limit.
	Exits []Exit `json:"exits,omitempty"`
	// Restarts counts the processes after the first.
	Restarts int `json:"restarts,omitempty"`
	// Value is the JSON value that the last process returned. It is nil if there is no value, if
	// it is in Exit.ValueFile, or if the result is too large to include it, as the result's
	// message reports. Values that JSON cannot express are objects with [NumberKey] or
	// [BytesKey].
	Value json.RawMessage `json:"value,omitempty"`
	// Failed reports whether the task counts as a failure of the run.
	Failed bool `json:"failed,omitempty"`
	// WasRestarting reports whether it had failed and would have restarted, had the run not
	// ended.
	WasRestarting bool `json:"was_restarting,omitempty"`
	// StacksFile is the path, on the task's host, of the stacks captured before the task was
	// stopped.
	StacksFile string `json:"stacks_file,omitempty"`
}

// EndedBy is the event that ended a run.
type EndedBy string

// The values of [EndedBy]. It is empty if every task ended by itself.
const (
	EndedByChief      EndedBy = "chief"         // the chief's final exit
	EndedByFailure    EndedBy = "failure"       // a task failed for good, with on_failure stop
	EndedByTimeout    EndedBy = "timeout"       // timeout passed
	EndedByMaxRunTime EndedBy = "max-run-time"  // max_run_time passed
	EndedByTogether   EndedBy = "stop-together" // a request to stop all tasks together
	EndedByCancel     EndedBy = "cancel"        // a cancellation, or terminate-all
	EndedByPlacement  EndedBy = "placement"     // no host accepted the tasks
	EndedByAfter      EndedBy = "after"         // the outcome of an earlier run
	EndedByNotice     EndedBy = "notice"        // a notice's deadline
)

// Evidence is the reason why a process that did not fail by itself counts as the root cause.
type Evidence string

// The values of [Evidence].
const (
	// EvidencePrinted means that it printed its error before it was stopped.
	EvidencePrinted Evidence = "printed"
	// EvidenceStacks means that the other tasks were waiting for it, according to the stacks.
	EvidenceStacks Evidence = "stacks"
	// EvidenceRequest means that it asked all tasks to stop because of an error.
	EvidenceRequest Evidence = "request"
)

// Failure is a failed process and its task.
type Failure struct {
	Task string `json:"task"`
	Rank int    `json:"rank"`
	Host string `json:"host,omitempty"`
	Exit
	// Evidence is empty if the process failed by itself.
	Evidence Evidence `json:"evidence,omitempty"`
	// Restarts is the number of earlier restarts of its task or, if OfGroup is set, of the group.
	// UsedUp reports whether max_restarts was reached.
	Restarts int  `json:"restarts,omitempty"`
	OfGroup  bool `json:"of_group,omitempty"`
	UsedUp   bool `json:"used_up,omitempty"`
}

// LeftOut describes what a result is too large for, or cannot hold. Its lists contain the first
// 100 names.
type LeftOut struct {
	// Tasks is the number of missing tasks. Completed tasks are left out first, the last tasks
	// before earlier ones.
	Tasks int `json:"tasks,omitempty"`
	// Values are tasks with values that together are too large. Each value is in result.json in
	// the log directory of the task's process.
	Values []string `json:"values,omitempty"`
	// Invalid are tasks with values that are not JSON.
	Invalid []string `json:"invalid,omitempty"`
}

// maxLeftOut limits the lists of [LeftOut].
const maxLeftOut = 100

// WithoutValue records that a task's value was left out.
func (r *RunResult) WithoutValue(task string) {
	if r.LeftOut == nil {
		r.LeftOut = &LeftOut{}
	}
	if len(r.LeftOut.Values) < maxLeftOut {
		r.LeftOut.Values = append(r.LeftOut.Values, task)
	}
}

// WithoutInvalid records that a task's value was left out because it is not JSON.
func (r *RunResult) WithoutInvalid(task string) {
	if r.LeftOut == nil {
		r.LeftOut = &LeftOut{}
	}
	if len(r.LeftOut.Invalid) < maxLeftOut {
		r.LeftOut.Invalid = append(r.LeftOut.Invalid, task)
	}
}

// RunResult describes how a run ended.
type RunResult struct {
	Verdict Verdict `json:"verdict"`
	// Message is one sentence about the end; package outcome derives it from the other fields. It
	// is empty on success.
	Message string `json:"message,omitempty"`
	// ErrorType is the type of the run's error, or empty on success.
	ErrorType string `json:"error_type,omitempty"`
	// ExitCode is the exit code of `clusterrun run` and `clusterrun wait`.
	ExitCode int     `json:"exit_code"`
	EndedBy  EndedBy `json:"ended_by,omitempty"`
	// Reason is the reason why the run was cancelled or could not be placed.
	Reason string `json:"reason,omitempty"`
	// Limit is the timeout or max_run_time that passed.
	Limit *Duration `json:"limit,omitempty"`
	// NotStarted reports whether the run ended before its last launch started a task.
	NotStarted bool `json:"not_started,omitempty"`
	// FirstFailure is the root cause: the earliest process that failed by itself, or that
	// [Failure.Evidence] identifies.
	FirstFailure *Failure `json:"first_failure,omitempty"`
	// FirstReport is the first failure that a program reported, if it is not FirstFailure.
	FirstReport *Failure `json:"first_report,omitempty"`
	// FirstError is the process that printed its own error before FirstFailure's process ended,
	// if FirstFailure does not explain what went wrong.
	FirstError *Failure `json:"first_error,omitempty"`
	// DoneBefore are the last tasks, at most 4, that succeeded, or were about to, before
	// FirstFailure's process lost its peer. It is set if no other process had printed its own
	// error.
	DoneBefore []TaskResult `json:"done_before,omitempty"`
	// FirstEnded is the task whose process ended first, if that process only lost FirstFailure's
	// process as a peer.
	FirstEnded string `json:"first_ended,omitempty"`
	// LivedOn are tasks that did not wait for other tasks, and that kept running for error_grace
	// after FirstFailure's process lost its peer, until they were stopped.
	LivedOn []string `json:"lived_on,omitempty"`
	// OperatorError is the error with which an operator stopped the run, if nothing failed
	// earlier.
	OperatorError *TogetherError `json:"operator_error,omitempty"`
	// Stopping is the stop's state, if the tasks stopped together.
	Stopping *Stopping `json:"stopping,omitempty"`
	// Stragglers are the tasks still running after the time for that expired, in rank order.
	// IgnoredStragglers reports whether they do not count as a failure.
	Stragglers        []string `json:"stragglers,omitempty"`
	IgnoredStragglers bool     `json:"ignored_stragglers,omitempty"`
	// Stacks is a summary of the last capture of the tasks' stacks before any task was stopped.
	// Tasks refers to files with all stacks.
	Stacks *stacktree.Findings `json:"stacks,omitempty"`
	// Tasks are in rank order, followed by those added during the run.
	Tasks []TaskResult `json:"tasks"`
	// Generation is the number of the group's last launch, from 0, and so the number of group
	// restarts.
	Generation int `json:"generation,omitempty"`
	// Preemptions is how often the run returned to the queue after a notice.
	Preemptions int `json:"preemptions,omitempty"`
	// GroupRestarts are the last of the Generation group restarts, oldest first.
	GroupRestarts []GroupRestart `json:"group_restarts,omitempty"`
	// Slow are the tasks and hosts whose last processes took longer per step than the others,
	// slowest first; at most 8.
	Slow []Slow `json:"slow,omitempty"`
	// Usage is the resource usage of all processes, including restarts, on the hosts that
	// answered.
	Usage Usage `json:"usage,omitzero"`
	// SharedMemory is memory in /dev/shm still held by ended processes, for the first 20
	// hosts.
	SharedMemory []SharedMemory `json:"shared_memory,omitempty"`
	// NotReleased is why hosts could not be released, one per line.
	NotReleased []string `json:"not_released,omitempty"`
	// NoticeFailed is the reason why the notice of the end was not sent.
	NoticeFailed string   `json:"notice_failed,omitempty"`
	LeftOut      *LeftOut `json:"left_out,omitempty"`
	// Output is the last lines of the output if the spec requests it.
	Output []string `json:"output,omitempty"`
	// Sweep is set for a sweep, which has trials instead of tasks.
	Sweep *SweepStatus `json:"sweep,omitempty"`
}

// SharedMemory is memory in /dev/shm that a run's ended processes still hold on a host.
type SharedMemory struct {
	Host string `json:"host"`
	// Left is the size in bytes of the files that are not in use, and Files their number.
	Left  int64 `json:"left"`
	Files int   `json:"files"`
	// Size is the size of all shared memory, in bytes.
	Size int64 `json:"size"`
}

// Cause returns the cause of the run's root failure. It is empty if no process caused the end,
// for example if the run was not placed.
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
	case r.Verdict == VerdictCancelled, r.ErrorType == ErrSubprocess: // an operator requested the stop
		return CauseOperator
	case r.ErrorType == ErrUnexpectedExit: // max_run_time passed
		return CauseTimeout
	}
	return ""
}

// Causes are all values of [Cause], each with its meaning in a few words and as a line.
var Causes = []struct {
	Cause   Cause
	Words   string
	Meaning string
}{
	{CauseCompleted, "completed", "it exited with 0 and was not stopped"},
	{CauseOrigin, "failed by itself", "it failed by itself, with another exit code or a signal that clusterrun did not send"},
	{CauseOOM, "out of memory", "the kernel killed it or its processes at the memory limit (see on_oom)"},
	{CauseLogQuota, "too much output", "it was stopped because the run had reached its log quota on that host"},
	{CauseSilence, "silent", "it was stopped because the run was silent on that host (on_silence)"},
	{CauseCollateral, "stopped in order", "clusterrun stopped it because another task had failed or the run was over"},
	{CauseOperator, "stopped on request", "it was stopped on request"},
	{CauseTimeout, "out of time", "it was stopped because timeout or max_run_time had passed"},
	{CausePreempted, "preempted", "it was stopped after a notice, or failed between the notice and the stop"},
	{CauseHostLost, "lost with its host", "it was lost with its host or the host's supervisor"},
}

// Words returns the cause's meaning in a few words.
func (c Cause) Words() string {
	for _, known := range Causes {
		if known.Cause == c {
			return known.Words
		}
	}
	return string(c)
}

// CausesText returns a line for each of [Causes], for help.
func CausesText() string {
	var b strings.Builder
	for _, c := range Causes {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.Cause, c.Meaning)
	}
	return b.String()
}

// Values that JSON cannot express are objects with one of these keys, in the values that tasks
// return and in the arguments and values of closures. The Python package encodes and decodes
// them.
const (
	// NumberKey is the key of "NaN", "Infinity" or "-Infinity".
	NumberKey = "$clusterrun.number"
	// BytesKey is the key of bytes in base64.
	BytesKey = "$clusterrun.bytes"
)

// numbers replaces objects that stand for numbers with those numbers. A JSON string cannot
// contain such an object, since its quotes would be escaped.
var numbers = func() *strings.Replacer {
	var pairs []string
	for _, number := range []string{"NaN", "Infinity", "-Infinity"} {
		pairs = append(pairs, `{"`+NumberKey+`":"`+number+`"}`, number)
	}
	return strings.NewReplacer(pairs...)
}()

// FormatValue formats a value on one line. NaN and the infinities are bare, which is not valid
// JSON.
func FormatValue(value json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return string(value)
	}
	return numbers.Replace(compact.String())
}
