package spec

import (
	"encoding/json"
	"strings"
	"time"
)

// Closure is a function that tasks have registered, with arguments, for one of
// them to call.
type Closure struct {
	// ID counts the closures of a queue from 1, in the order they were scheduled.
	ID uint64 `json:"i,omitempty"`
	// Function is the name under which tasks have registered it.
	Function string `json:"f"`
	// Args and Kwargs are JSON: an array and an object. An object with the one key
	// [ResourceKey] among them stands for what the executing task has built of that
	// per-worker resource.
	Args   json.RawMessage `json:"a,omitempty"`
	Kwargs json.RawMessage `json:"k,omitempty"`
	// Resources are the IDs of those it uses.
	Resources []uint64 `json:"r,omitempty"`
	// Attempt counts how often it was given to a task, from 1.
	Attempt int `json:"n,omitempty"`
	// Left is how many of its retries are left, in a lease. nil: it has none, or the
	// queue is of a version that does not count them, and each attempt but the first was
	// one.
	Left *int `json:"l,omitempty"`
	// Options are rare; nil is none.
	Options *ClosureOptions `json:"o,omitempty"`
}

// Size is what the closure counts against [MaxQueueBytes] and [MaxBatchBytes]: the
// bytes of its arguments and names.
func (c *Closure) Size() int {
	size := len(c.Function) + len(c.Args) + len(c.Kwargs)
	if c.Options != nil {
		size += len(c.Options.Key) + len(c.Options.Task)
	}
	return size
}

// ClosureOptions are what a closure may have beyond the seed.
type ClosureOptions struct {
	// Key makes scheduling it again with the same key the same closure, for as long as the
	// run lives, unless that was cancelled. One that has failed raises its error again.
	Key string `json:"key,omitempty"`
	// Retry: where the closure with the key has failed, this is another one.
	Retry bool `json:"retry,omitempty"`
	// Task is the only task that may call it; else any may.
	Task string `json:"task,omitempty"`
	// Detached: join and done do not wait for it, and its error is only its own.
	Detached bool `json:"detached,omitempty"`
	// Priority: higher ones go first. Default 0.
	Priority int `json:"priority,omitempty"`
	// Timeout bounds one call. 0: none.
	Timeout Duration `json:"timeout,omitempty"`
	// Retries is how often it is called again after an error or a timeout of its own.
	Retries int `json:"retries,omitempty"`
	// MaxLosses is how often its task may die under it before it is not put back any
	// more. nil: [DefaultMaxLosses]. Negative: without limit, as in the seed.
	MaxLosses *int `json:"max_losses,omitempty"`
}

// Limits of closures.
const (
	// DefaultMaxLosses: a closure that has killed more tasks than that is set aside.
	DefaultMaxLosses = 10
	// DefaultQueueSize is how many closures may wait in a queue (SEED-34), and
	// MaxQueueBytes what they and those being called may have together in arguments
	// and names. A full queue makes schedule wait.
	DefaultQueueSize = 256 * 1024
	MaxQueueBytes    = 1536 << 10
	// MaxQueueSize is more closures than [MaxQueueBytes] lets in.
	MaxQueueSize = MaxQueueBytes
	// DefaultTransientFailures is the seed's (SEED-53).
	DefaultTransientFailures = 3
	// MaxClosureBytes bounds the arguments of one closure, and its value.
	MaxClosureBytes = 256 << 10
	// MaxBatchBytes bounds what is sent at once.
	MaxBatchBytes = 512 << 10
	// MaxBatch bounds the closures that are sent at once.
	MaxBatch = 1000
	// MaxClosureResources bounds the per-worker resources of one closure.
	MaxClosureResources = 100
	// MaxFunctionName is the longest name of a function, a client or a key, in bytes.
	MaxFunctionName = 200
	// MaxPriority bounds priorities, on either side of 0.
	MaxPriority = 1000
	// MaxClosureError bounds the text of an error, and MaxClosureTraceback its
	// traceback, whose last bytes are kept.
	MaxClosureError     = 8 << 10
	MaxClosureTraceback = 16 << 10
	// MaxErrorArgs bounds what an exception was made of, as JSON.
	MaxErrorArgs = 1 << 10
)

// ResourceKey is the key of the object that stands for a per-worker resource among
// the arguments of a closure; its value is the ID.
const ResourceKey = "$clusterrun.resource"

// Resource is built by every task that calls a closure with it, once in each
// process (SEED-45). It is there until its client releases it, and the last closure
// with it has ended.
type Resource struct {
	ID       uint64          `json:"i"`
	Function string          `json:"f"`
	Args     json.RawMessage `json:"a,omitempty"`
	Kwargs   json.RawMessage `json:"k,omitempty"`
}

// OutcomeKind says how a call of a closure ended.
type OutcomeKind string

// The values of [OutcomeKind]. The first four end the closure; what the others
// mean for it the queue decides.
const (
	OutcomeValue     OutcomeKind = "value"
	OutcomeError     OutcomeKind = "error"     // the function's own, and no retries are left
	OutcomeInput     OutcomeKind = "input"     // a resource among its arguments could not be built
	OutcomeCancelled OutcomeKind = "cancelled" // on request
	// OutcomeAgain: it failed or ran out of time, and has retries left.
	OutcomeAgain OutcomeKind = "again"
	// OutcomeLost: the process ended before the call did. Started says whether the
	// call had begun.
	OutcomeLost OutcomeKind = "lost"
	// OutcomeUnavailable: another task that the function needs, such as a parameter
	// server, does not answer; Error.Task names it.
	OutcomeUnavailable OutcomeKind = "unavailable"
)

// Final says that an outcome of this kind ends the closure, whatever the queue
// thinks of it. None is a value.
func (k OutcomeKind) Final() bool {
	switch k {
	case "", OutcomeValue, OutcomeError, OutcomeInput, OutcomeCancelled:
		return true
	}
	return false
}

// Outcome is how a call of a closure ended, or the closure.
type Outcome struct {
	ID   uint64      `json:"i"`
	Kind OutcomeKind `json:"c,omitempty"` // none: value
	// Value is the JSON value. None is null.
	Value json.RawMessage `json:"v,omitempty"`
	Error *ClosureError   `json:"e,omitempty"`
	// Task called it.
	Task string `json:"t,omitempty"`
	// Started: the call had begun, where it was lost.
	Started bool `json:"s,omitempty"`
	// Alone: the error concerns nobody else. The function has returned, and only what it
	// has returned cannot be handed on.
	Alone bool `json:"a,omitempty"`
}

// ClosureError is an error of a closure.
type ClosureError struct {
	// Kind is the kind of the error, such as ValueError, or one of the kinds below.
	Kind      string `json:"kind,omitempty"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
	// Closure is the one that failed, and Task the one that called it, or, with
	// [OutcomeUnavailable], the one that does not answer.
	Closure uint64 `json:"closure,omitempty"`
	Task    string `json:"task,omitempty"`
	// Args is an array of what the exception was made of, where that is short, for
	// programs of the same language: an OSError has its errno there.
	Args json.RawMessage `json:"args,omitempty"`
	// Before: the closure has failed before, and was scheduled again by its key. The error
	// itself is its outcome, in the history.
	Before bool `json:"before,omitempty"`
}

func (e *ClosureError) Error() string {
	if e.Kind == "" || strings.HasPrefix(e.Message, e.Kind) {
		return e.Message
	}
	return e.Kind + ": " + e.Message
}

// Kinds of errors that are ours.
const (
	ErrClosureCancelled   = "CancelledError"
	ErrClosureInput       = "InputError"
	ErrClosureUnavailable = "UnavailableError"
	ErrClosureTimeout     = "ClosureTimeoutError"
	ErrClosureQuarantined = "QuarantinedError"
	ErrUnknownFunction    = "UnknownFunctionError"
	ErrValueTooLarge      = "ValueTooLargeError"
	ErrNotJSON            = "NotJSONError"
	ErrClosureLost        = "WorkerLostError"
	ErrClosureNotFound    = "NotFoundError"
)

// Texts of the seed (SEED-43).
const (
	TextClosureCancelled = "The corresponding function is cancelled. Please reschedule the function."
	TextClosureAborted   = "The corresponding function is aborted. Please reschedule the function."
)

// ClosureQueueID is the workflow ID of the queue of a run; execution is the
// Temporal run ID of the run's first execution.
func ClosureQueueID(workflowID, execution string) string {
	short, _, _ := strings.Cut(execution, "-")
	return workflowID + "/closures/" + short
}

// ClosureQueueInput is the input of the workflow [ClosureQueueType].
type ClosureQueueInput struct {
	// Run is the run, with its first execution.
	Run BarrierRun `json:"run"`
	// QueueSize replaces [DefaultQueueSize]. Negative: no limit but that of bytes.
	QueueSize int `json:"queue_size,omitempty"`
	// TransientUnavailable is how many times another task may not answer before that
	// is the queue's error: the K-th is (D-09). nil: [DefaultTransientFailures]. Not positive:
	// the first is.
	TransientUnavailable *int `json:"transient_unavailable,omitempty"`
}

// Input of the updates of a queue.
type (
	// ScheduleRequest is the input of [UpdateSchedule]. A client numbers its requests,
	// so that one that is sent again is the same.
	ScheduleRequest struct {
		Client string `json:"client"`
		// Batch counts the requests of the client, from 1.
		Batch uint64 `json:"batch"`
		// Epoch is the last one the client was told. Closures of an older one are
		// cancelled: they were scheduled before the client knew of an error.
		Epoch    uint64    `json:"epoch,omitempty"`
		Closures []Closure `json:"closures"`
	}
	// ScheduleAnswer says which IDs they have; see [ScheduleAnswer.IDs].
	ScheduleAnswer struct {
		// First is the ID of the first new one of them, and those of the other new ones
		// follow without a gap: one that is known takes none. 0: all are known.
		First uint64 `json:"first"`
		// Known has the IDs of those whose key was known, by place in the request.
		Known map[int]uint64 `json:"known,omitempty"`
		Epoch uint64         `json:"epoch,omitempty"`
		// Raised is the queue's error, which this request has taken, once nothing was
		// executing any more. Then, and when Cancelled is set, all of its closures are
		// cancelled (SEED-38), but for those that had ended before: a request that is
		// larger than the queue may have got in by half.
		Raised    *ClosureError `json:"raised,omitempty"`
		Cancelled bool          `json:"cancelled,omitempty"`
		// Room is how many more closures may be queued. nil: any number, or the queue is of
		// a version that does not say.
		Room *int `json:"room,omitempty"`
	}
	// WaitRequest is the input of [UpdateJoin] and [UpdateDone].
	WaitRequest struct {
		Client string `json:"client"`
		// Call counts such requests of the client, from 1.
		Call uint64 `json:"call"`
		// All: detached closures are waited for, too.
		All bool `json:"all,omitempty"`
	}
	// WaitAnswer is their answer.
	WaitAnswer struct {
		// Done: nothing is queued or executing.
		Done   bool          `json:"done"`
		Epoch  uint64        `json:"epoch,omitempty"`
		Raised *ClosureError `json:"raised,omitempty"`
	}
	// WithdrawAnswer is the answer of [UpdateWithdraw], whose input is the
	// [WaitRequest] that is taken back.
	WithdrawAnswer struct {
		// Withdrawn: it waited, and does not any more.
		Withdrawn bool `json:"withdrawn"`
	}
	// ResourceRequest is the input of [UpdateCreateResource].
	ResourceRequest struct {
		Client string `json:"client"`
		// Number counts such requests of the client, from 1.
		Number   uint64   `json:"number"`
		Resource Resource `json:"resource"` // without an ID
		// Task is the task whose process number Process the client is. None: it is none.
		Task    string `json:"task,omitempty"`
		Process int    `json:"process,omitempty"`
	}
	// ResourceAnswer has its ID.
	ResourceAnswer struct {
		ID uint64 `json:"id"`
	}
	// ReleaseRequest is the input of [UpdateReleaseResources]. A client releases what it
	// has created, and has had the queue answer for its closures with that before. The
	// same request sent again does nothing.
	ReleaseRequest struct {
		Client    string   `json:"client,omitempty"`
		Resources []uint64 `json:"resources,omitempty"`
		// Task, in their place: its processes with numbers below Process have ended, and
		// what they have created is released.
		Task    string `json:"task,omitempty"`
		Process int    `json:"process,omitempty"`
	}
	// ReleaseAnswer says how many of them there were, of this client or task and not
	// released before.
	ReleaseAnswer struct {
		Released int `json:"released"`
	}
	// CancelRequest is the input of [UpdateCancelClosures].
	CancelRequest struct {
		// Closures are the IDs; none: all.
		Closures []uint64 `json:"closures,omitempty"`
	}
	// CancelAnswer says how many were cancelled in the queue, and how many that are
	// being called were told.
	CancelAnswer struct {
		Cancelled int `json:"cancelled"`
		Told      int `json:"told"`
	}
	// PauseRequest is the input of [UpdatePauseQueue].
	PauseRequest struct {
		Paused bool   `json:"paused"`
		Reason string `json:"reason,omitempty"`
	}
)

// IDs are those of the n closures of the request, by place.
func (a ScheduleAnswer) IDs(n int) []uint64 {
	ids, next := make([]uint64, n), a.First
	for i := range ids {
		if known, ok := a.Known[i]; ok {
			ids[i] = known
			continue
		}
		ids[i] = next
		next++
	}
	return ids
}

// ServingMessage is what a host tells the queue about the tasks that serve there,
// as a signal: all of them, whenever that changes.
type ServingMessage struct {
	Host string `json:"host"`
	// Queue is that of the host worker.
	Queue string `json:"queue"`
	// Seq grows with every message of the broker; an older one is ignored.
	Seq int64 `json:"seq"`
	// Broker tells the host worker's life apart from the one before: what an earlier
	// one held is leased anew at once, without waiting for its leases to run out.
	Broker  string        `json:"broker,omitempty"`
	Serving []ServingTask `json:"serving"`
	// Lists are there in JSON only; see [ServingTask.List].
	Lists [][]string `json:"lists,omitempty"`
	// Over says that the run has ended, and how.
	Over string `json:"over,omitempty"`
}

// ServingTask is a task that calls closures.
type ServingTask struct {
	Task string `json:"task"`
	// Process tells the processes of the task apart.
	Process string `json:"process"`
	// Slots is how many closures it calls at the same time.
	Slots int `json:"slots"`
	// Functions are the names it has registered, sorted.
	Functions []string `json:"functions,omitempty"`
	// List, in JSON only, is the place from 1 of its functions in the lists of the
	// message, where they are long.
	List int `json:"list,omitempty"`
}

// Lease is the input of [ActivityRunClosures]: closures for the tasks of a host.
// The activity returns as soon as all of them have ended, or earlier with some.
// Its end, of whatever kind, cancels none of them: those it does not return stay on
// the host, and the next lease that names them takes over.
type Lease struct {
	// Queue is the workflow ID of the queue, and Run the run.
	Queue string     `json:"queue"`
	Run   BarrierRun `json:"run"`
	// Closures are those to be called, and those that the host holds already, by
	// ID. It takes one it does not hold for new.
	Closures  []Closure  `json:"closures"`
	Resources []Resource `json:"resources,omitempty"`
	// Cancelled are those of them that were cancelled, as by [CancelLease] with this
	// Grace: so a host hears of it that does not know them (any more).
	Cancelled []uint64      `json:"cancelled,omitempty"`
	Grace     time.Duration `json:"grace,omitempty"`
	// Released are ranges of IDs, first and last, of resources that nobody needs any
	// more. What processes have built of them they drop.
	Released [][2]uint64 `json:"released,omitempty"`
}

// LeaseResult is its result.
type LeaseResult struct {
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Rest are the IDs of those that have not ended.
	Rest []uint64 `json:"rest,omitempty"`
	// Idle: some slot had nothing to do when this was returned.
	Idle bool `json:"idle,omitempty"`
	// Done is how many closures the host ended, those of other leases included, while
	// it had the lease, for Took milliseconds.
	Done int `json:"done,omitempty"`
	Took int `json:"took_ms,omitempty"`
}

// LeaseBeat are the details of a lease's heartbeats.
type LeaseBeat struct {
	// Executing is how many of its closures are being called.
	Executing int `json:"executing"`
}

// CancelLease is the input of [ActivityCancelClosures]: these are not to be called
// any more. Those being called are told, and their process is restarted after Grace.
// They end, as cancelled or otherwise, in their leases.
type CancelLease struct {
	Queue    string        `json:"queue"`
	Run      BarrierRun    `json:"run"`
	Closures []uint64      `json:"closures"`
	Grace    time.Duration `json:"grace"`
}

// ReleasedResources is the input of [ActivityReleaseResources]. It is for a host that
// has no lease at the moment; others learn the same from a [Lease].
type ReleasedResources struct {
	Queue    string      `json:"queue"`
	Run      BarrierRun  `json:"run"`
	Released [][2]uint64 `json:"released"`
}

// EndClosuresInput is the input of [ActivityEndClosures].
type EndClosuresInput struct {
	Run  BarrierRun `json:"run"` // with its first execution
	Over string     `json:"over"`
}

// ClosuresCheckInput is the input of [ActivityClosuresCheck]. The activity fails, and is
// tried again, as long as the run is open.
type ClosuresCheckInput struct {
	Run BarrierRun `json:"run"` // with its first execution
}

// ClosuresCheckOutput is its result.
type ClosuresCheckOutput struct {
	// Over says how the run has ended.
	Over string `json:"over"`
}

// DecidedOutcomes are outcomes that the queue itself decided. It writes them into
// its history as a marker, so that whoever follows the history knows of them, too.
type DecidedOutcomes struct {
	// Cancelled are ranges of IDs, first and last, which were cancelled before a call
	// of them had ended.
	Cancelled [][2]uint64 `json:"cancelled,omitempty"`
	// Text is why they were, where it is not [TextClosureCancelled].
	Text  string    `json:"text,omitempty"`
	Other []Outcome `json:"other,omitempty"`
	// TooLarge is no outcome: the queue is too large to continue as new.
	TooLarge bool `json:"too_large,omitempty"`
}

// QueueStatus is the answer of [QueryQueue].
type QueueStatus struct {
	State  QueueState    `json:"state"`
	Paused string        `json:"paused,omitempty"`
	Error  *ClosureError `json:"error,omitempty"`
	Counts QueueCounts   `json:"counts"`
	// Workers are the tasks that serve, sorted.
	Workers []WorkerStatus `json:"workers"`
	// Lists are there in JSON only; see [ServingTask.List].
	Lists [][]string `json:"lists,omitempty"`
	// Executions are those of the workflow, the oldest first, with the IDs that ended
	// in each.
	Executions []QueueExecution `json:"executions"`
	// Unserved is what waits until a task serves it, as far as the query says; at most
	// [MaxUnserved] of these.
	Unserved []UnservedClosures `json:"unserved,omitempty"`
}

// MaxUnserved bounds what a status names of what nobody serves.
const MaxUnserved = 20

// UnservedClosures are queued closures that no task which serves now may call.
type UnservedClosures struct {
	Function string `json:"function"`
	Task     string `json:"task,omitempty"` // the only one that may call them
	Queued   int    `json:"queued"`
}

// QueueState is where a queue is.
type QueueState string

// The values of [QueueState].
const (
	QueueOpen     QueueState = "open"
	QueuePaused   QueueState = "paused"
	QueueFailed   QueueState = "failed"   // the next schedule, join or done raises
	QueueDraining QueueState = "draining" // and waits until nothing executes
	QueueEnded    QueueState = "ended"    // the run has ended
)

// QueueCounts are numbers of closures.
type QueueCounts struct {
	Scheduled uint64 `json:"scheduled"`
	Queued    int    `json:"queued"`
	// Executing are those that are being called, as far as their hosts have said, and
	// GivenOut those that hosts have beside them. To the queue itself, which does not hear
	// of that, all count as executing that hosts have.
	Executing int    `json:"executing"`
	GivenOut  int    `json:"given_out,omitempty"`
	Finished  uint64 `json:"finished"` // with a value
	Failed    uint64 `json:"failed"`
	Cancelled uint64 `json:"cancelled"`
	// Calls is how many times closures were called, as far as hosts could tell.
	Calls    uint64 `json:"calls"`
	PutBack  uint64 `json:"put_back"`
	Bytes    int    `json:"bytes"` // of queued and executing ones
	Resource int    `json:"resources"`
}

// WorkerStatus is one serving task.
type WorkerStatus struct {
	Task      string   `json:"task"`
	Host      string   `json:"host"`
	Serving   bool     `json:"serving"`
	Slots     int      `json:"slots"`
	Functions []string `json:"functions,omitempty"`
	List      int      `json:"list,omitempty"` // as in [ServingTask]
}

// QueueExecution is one execution of a queue's workflow.
type QueueExecution struct {
	RunID string `json:"run_id"`
	// First and Last bound the IDs of the closures that ended in it. 0: none has.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last,omitempty"`
}

// QueueResult is the result of a queue's workflow.
type QueueResult struct {
	Counts     QueueCounts      `json:"counts"`
	Executions []QueueExecution `json:"executions"`
}
