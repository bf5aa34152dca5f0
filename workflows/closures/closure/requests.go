package closure

import (
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// QueueID returns the workflow ID of the queue of a run; execution is the
// Temporal run ID of the run's first execution.
func QueueID(workflowID, execution string) string {
	return workflowID + "/closures/" + spec.ShortRunID(execution)
}

// QueueInput is the input of the workflow [QueueType].
type QueueInput struct {
	// Run is the run, with its first execution.
	Run spec.RunRef `json:"run"`
	// QueueSize replaces [spec.DefaultQueueSize]. If it is negative, only the bytes are
	// limited.
	QueueSize int `json:"queue_size,omitempty"`
	// TransientUnavailable is the number of the report that another task does not answer which
	// becomes the queue's error. nil means [spec.DefaultTransientFailures]. If it is not
	// positive, the first report does.
	TransientUnavailable *int `json:"transient_unavailable,omitempty"`
}

// NewQueueInput returns the input of the queue of a run of this spec. run must have the first
// execution. env looks up a variable of the caller; the spec's own variables come first, as for
// the tasks.
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

// Input of the updates of a queue.
type (
	// ScheduleRequest is the input of [UpdateSchedule]. A client numbers its requests, so that
	// the queue recognizes a repeated request.
	ScheduleRequest struct {
		Client string `json:"client"`
		// Batch counts the requests of the client, from 1.
		Batch uint64 `json:"batch"`
		// Epoch is the last epoch that the client has received. Closures of an older one are
		// cancelled: they were scheduled before the client knew of an error.
		Epoch    uint64    `json:"epoch,omitempty"`
		Closures []Closure `json:"closures"`
	}
	// ScheduleAnswer has the IDs of the closures.
	ScheduleAnswer struct {
		// First is the ID of the first closure, and the IDs of the others follow without a gap.
		First uint64 `json:"first"`
		Epoch uint64 `json:"epoch,omitempty"`
		// Raised is the queue's error, which this request has taken, after all calls had ended.
		// Then, and when Cancelled is set, all of its closures are cancelled, except for
		// closures that had ended before: a request that is larger than the queue may have been
		// queued in part.
		Raised    *Error `json:"raised,omitempty"`
		Cancelled bool   `json:"cancelled,omitempty"`
		// Room is the number of closures that may still be queued. nil means no limit.
		Room *int `json:"room,omitempty"`
	}
	// WaitRequest is the input of [UpdateJoin] and [UpdateDone].
	WaitRequest struct {
		Client string `json:"client"`
		// Call counts such requests of the client, from 1.
		Call uint64 `json:"call"`
	}
	// WaitAnswer is their answer.
	WaitAnswer struct {
		// Done reports whether nothing is queued or executing.
		Done   bool   `json:"done"`
		Epoch  uint64 `json:"epoch,omitempty"`
		Raised *Error `json:"raised,omitempty"`
	}
	// WithdrawAnswer is the answer of [UpdateWithdraw], whose input is the
	// [WaitRequest] that is taken back.
	WithdrawAnswer struct {
		// Withdrawn reports whether the request waited until then.
		Withdrawn bool `json:"withdrawn"`
	}
	// ResourceRequest is the input of [UpdateCreateResource].
	ResourceRequest struct {
		Client string `json:"client"`
		// Number counts such requests of the client, from 1.
		Number   uint64   `json:"number"`
		Resource Resource `json:"resource"` // without an ID
		// Task is the task of whose process number Process is the client. It is empty if the
		// client is not a task.
		Task    string `json:"task,omitempty"`
		Process int    `json:"process,omitempty"`
	}
	// ResourceAnswer has its ID.
	ResourceAnswer struct {
		ID uint64 `json:"id"`
	}
	// ReleaseRequest is the input of [UpdateReleaseResources]. A client releases the resources
	// that it has created, after the queue has answered its requests with closures that use
	// them. The same request sent again does nothing.
	ReleaseRequest struct {
		Client    string   `json:"client,omitempty"`
		Resources []uint64 `json:"resources,omitempty"`
		// Task replaces them: its processes with numbers below Process have ended, and the
		// resources that they have created are released.
		Task    string `json:"task,omitempty"`
		Process int    `json:"process,omitempty"`
	}
	// ReleaseAnswer has the number of resources that were released by this request.
	ReleaseAnswer struct {
		Released int `json:"released"`
	}
	// CancelRequest is the input of [UpdateCancelClosures].
	CancelRequest struct {
		// Closures are the IDs. If it is empty, all are cancelled.
		Closures []uint64 `json:"closures,omitempty"`
	}
	// CancelAnswer has the number of closures that were cancelled in the queue, and of closures
	// in calls whose hosts received a request to cancel them.
	CancelAnswer struct {
		Cancelled int `json:"cancelled"`
		Told      int `json:"told"`
	}
)
