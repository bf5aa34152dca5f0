package closure

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// QueueID returns the workflow ID of a run's queue. execution is the Temporal run ID of the run's
// first execution.
func QueueID(workflowID, execution string) string {
	return workflowID + "/closures/" + spec.ShortRunID(execution)
}

// TaskQueue returns the task queue for a queue's batches, which every serving host polls.
func TaskQueue(queueID string) string { return queueID + "/calls" }

// TaskTimeout is the timeout of a queue's workflow tasks. If the host worker is killed just as the
// server hands it a workflow task, all closures wait for this timeout. Temporal's default is 10
// seconds.
const TaskTimeout = 2 * time.Second

// QueueInput is the [QueueType] workflow's input.
type QueueInput struct {
	// Run is the run, identified by its first execution.
	Run spec.RunRef `json:"run"`
	// QueueSize replaces [spec.DefaultQueueSize]. If it is negative, only the total size in bytes
	// is limited.
	QueueSize int `json:"queue_size,omitempty"`
	// TransientUnavailable is the number of reports of an unresponsive task after which the queue's
	// error is set. nil means [spec.DefaultTransientFailures]. If it is not positive, the first
	// report sets the error.
	TransientUnavailable *int `json:"transient_unavailable,omitempty"`
}

// NewQueueInput returns the queue's input for a run with spec s. run must identify the first
// execution. env looks up a caller's variable. The spec's variables take precedence, as in tasks.
//
// If a variable is invalid, NewQueueInput returns an error along with an input that is valid
// without it.
func NewQueueInput(s *spec.RunSpec, run spec.RunRef, env func(name string) string) (QueueInput, error) {
	in := QueueInput{Run: run}
	switch size := s.Closures.QueueSize; {
	case size == nil || *size == spec.DefaultQueueSize:
	case *size == 0:
		in.QueueSize = -1
	default:
		in.QueueSize = *size
	}
	var err error
	in.TransientUnavailable, err = s.TransientFailuresOr(env)
	return in, err
}

// Size returns the maximum number of closures in the queue.
func (in QueueInput) Size() int {
	switch {
	case in.QueueSize == 0:
		return spec.DefaultQueueSize
	case in.QueueSize < 0:
		return spec.MaxQueueSize
	}
	return in.QueueSize
}

// Messages of programs that schedule closures, which are also the queue's update. A client sends
// one request at a time. It may abandon a request, because the next one contains everything that
// the queue may not know. So it does not matter which of its requests have arrived.
type (
	// SyncRequest is the input of [UpdateSync].
	SyncRequest struct {
		Client string `json:"client"`
		// After counts the outcomes that the client has received. The queue drops them.
		After uint64 `json:"after,omitempty"`
		// First is the first closure's number. The client counts its closures from 1, and the queue
		// ignores repetitions.
		First    uint64    `json:"first,omitempty"`
		Closures []Closure `json:"closures,omitempty"`
		// Resources lists all resources that the closures use.
		Resources []Resource `json:"resources,omitempty"`
		// Released lists resources that no later closure uses.
		Released []uint64 `json:"released,omitempty"`
		// Join requests Done. Like new closures, it raises the queue's error.
		Join bool `json:"join,omitempty"`
		// Wait requests an answer only after an outcome, or with Join after all of them.
		Wait bool `json:"wait,omitempty"`
	}
	// SyncAnswer is the result of [UpdateSync].
	SyncAnswer struct {
		// Outcomes lists outcomes in the order that the calls returned. The IDs are the client's
		// numbers, or 0 for [OutcomeRaised]. When that outcome appears, all calls have returned.
		Outcomes []Outcome `json:"outcomes,omitempty"`
		// Scheduled counts the client's closures that the queue has accepted.
		Scheduled uint64 `json:"scheduled"`
		// Room is how many closures may still be queued.
		Room int `json:"room"`
		// Failed reports whether the queue is about to raise an error.
		Failed bool `json:"failed,omitempty"`
		// Done reports whether nothing is queued or executing, and Outcomes is complete.
		Done bool `json:"done,omitempty"`
	}
)
