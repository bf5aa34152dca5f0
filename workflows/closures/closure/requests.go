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

// TaskTimeout is the timeout of a queue's workflow tasks. All closures wait for it if the host
// worker is killed just as the server hands it a task. The default is 10 seconds.
const TaskTimeout = 2 * time.Second

// QueueInput is the [QueueType] workflow's input.
type QueueInput struct {
	// Run is the run, with its first execution.
	Run spec.RunRef `json:"run"`
	// QueueSize replaces [spec.DefaultQueueSize]. If it is negative, only the bytes are limited.
	QueueSize int `json:"queue_size,omitempty"`
	// TransientUnavailable is the number of reports of an unresponsive task that sets the queue's
	// error. nil means [spec.DefaultTransientFailures]. If it is not positive, the first report
	// does.
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

// Messages of programs that schedule closures, which are also the inputs of the queue's updates. A
// client numbers its requests, and sends the next one of a kind after the answer, so that the
// queue recognizes repeated requests.
type (
	// ScheduleRequest is the input of [UpdateSchedule].
	ScheduleRequest struct {
		Client string `json:"client"`
		// Batch counts the client's requests, from 1.
		Batch    uint64    `json:"batch"`
		Closures []Closure `json:"closures,omitempty"`
		// Resources lists all resources that the closures use.
		Resources []Resource `json:"resources,omitempty"`
		// Released lists resources that no later closure uses.
		Released []uint64 `json:"released,omitempty"`
		// Wait reports whether the answer may wait for outcomes, as if the client then sent a
		// [TakeRequest] with this After. A take causes the request to be answered immediately.
		Wait  bool   `json:"wait,omitempty"`
		After uint64 `json:"after,omitempty"`
	}
	// ScheduleAnswer returns the closures' IDs.
	ScheduleAnswer struct {
		// First is the ID of the first closure. The remaining IDs follow without a gap.
		First uint64 `json:"first"`
		// Room is how many closures may still be queued.
		Room int `json:"room"`
		// Raised is the queue's error, which this request has taken after all calls were over. The
		// request's closures are cancelled, except for those that had already ended: a request
		// that is larger than the queue may have been queued in part.
		Raised *Error `json:"raised,omitempty"`
		// Outcomes lists the outcomes that the client waited for. The answer to a repeated
		// request omits them: a take returns them.
		Outcomes []Outcome `json:"outcomes,omitempty"`
	}
	// WaitRequest is the input of [UpdateJoin].
	WaitRequest struct {
		Client string `json:"client"`
		// Call counts the client's join requests, from 1.
		Call uint64 `json:"call"`
		// Poll requests an immediate answer, unless the queue has an error.
		Poll bool `json:"poll,omitempty"`
	}
	// WaitAnswer is the result of [UpdateJoin].
	WaitAnswer struct {
		// Done reports whether nothing is queued or executing.
		Done   bool   `json:"done"`
		Raised *Error `json:"raised,omitempty"`
	}
	// TakeRequest is the input of [UpdateTake]. It waits for the client's outcomes.
	TakeRequest struct {
		Client string `json:"client"`
		// After counts the outcomes that the client has received. The queue drops them.
		After uint64 `json:"after"`
	}
	// TakeAnswer lists outcomes in the order that the closures ended.
	TakeAnswer struct {
		Outcomes []Outcome `json:"outcomes,omitempty"`
	}
	// Opened describes an existing queue.
	Opened struct {
		// Room is the number of closures that can be scheduled before the queue reports its
		// capacity again.
		Room int `json:"room"`
	}
)
