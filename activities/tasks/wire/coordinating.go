package wire

import "github.com/clusterrun/clusterrun/workflows/closures/closure"

// Paths for programs that schedule closures. All are POST.
const (
	PathCoordinatorOpen      = "/v1/coordinator/open"
	PathCoordinatorSchedule  = "/v1/coordinator/schedule"
	PathCoordinatorJoin      = "/v1/coordinator/join"
	PathCoordinatorDone      = "/v1/coordinator/done"
	PathCoordinatorResources = "/v1/coordinator/resources"
	PathCoordinatorRelease   = "/v1/coordinator/release"
	PathCoordinatorCancel    = "/v1/coordinator/cancel"
	PathCoordinatorOutcomes  = "/v1/coordinator/outcomes"
	PathCoordinatorFind      = "/v1/coordinator/find"
)

// CodeQueueRefused means that the queue refuses a request.
const CodeQueueRefused = "queue_refused"

// CoordinatorOpened is the answer to a request to open the queue.
type CoordinatorOpened struct {
	// At is a position in the history: closures that are scheduled from now on end after it.
	At string `json:"at"`
	// Room is how many closures can be scheduled before the queue reports its room.
	Room int `json:"room"`
}

// ScheduleRequest brings closures to the queue.
type ScheduleRequest struct {
	// Session is a random name that no other process has.
	Session string `json:"session"`
	// Batch counts such requests of the session, from 1. A repeated request has the same
	// number and the same closures.
	Batch uint64 `json:"batch"`
	// Epoch is the highest epoch that the process knew when the closures were scheduled.
	Epoch    uint64            `json:"epoch,omitempty"`
	Closures []closure.Closure `json:"closures"`
}

// Scheduled is the answer to a [ScheduleRequest].
type Scheduled struct {
	// IDs are the IDs of the closures, in the order of the request.
	IDs []uint64 `json:"ids"`
	// Known are the places of closures that the queue already had, by their keys.
	Known []int  `json:"known,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
	// Raised is the queue's error, which this request has received. If it or Cancelled is
	// set, the closures of the request are cancelled.
	Raised    *closure.Error `json:"raised,omitempty"`
	Cancelled bool           `json:"cancelled,omitempty"`
	// Room is how many more closures can be queued; nil if there is no limit.
	Room *int `json:"room,omitempty"`
}

// WaitRequest asks whether everything is done, or waits for that.
type WaitRequest struct {
	Session string `json:"session"`
	// Call counts such requests of the session, from 1. A repeated request has the same
	// number.
	Call uint64 `json:"call"`
}

// ResourceRequest creates a per-worker resource.
type ResourceRequest struct {
	Session string `json:"session"`
	// Number counts such requests of the session, from 1.
	Number uint64 `json:"number"`
	closure.Resource
}

// ReleaseRequest releases resources that the session has created. The closures of the session
// that use them must have been answered before.
type ReleaseRequest struct {
	Session   string   `json:"session"`
	Resources []uint64 `json:"resources"`
}

// OutcomesRequest asks for the outcomes of closures.
type OutcomesRequest struct {
	Session string `json:"session"`
	// After is the position up to which the process has read.
	After string `json:"after"`
	// Wait is how long to wait for something new, in seconds.
	Wait float64 `json:"wait,omitempty"`
	// Tuples reports whether values keep the objects that stand for tuples of Python.
	Tuples bool `json:"tuples,omitempty"`
}

// CoordinatorOutcomes are outcomes of closures of the queue, whoever has scheduled them:
// first Outcomes, and then Cancelled.
type CoordinatorOutcomes struct {
	// At is the position up to which the history was read.
	At        string              `json:"at"`
	Outcomes  []closure.Outcome   `json:"outcomes,omitempty"`
	Cancelled []CancelledClosures `json:"cancelled,omitempty"`
}

// CancelledClosures are closures that the queue has cancelled itself.
type CancelledClosures struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Text  string `json:"text,omitempty"`
}

// FindRequest asks for closures by their IDs, however old.
type FindRequest struct {
	Closures []uint64 `json:"closures"`
	Tuples   bool     `json:"tuples,omitempty"`
}

// Found has the outcomes of those that have ended.
type Found struct {
	Outcomes []closure.Outcome `json:"outcomes"`
}
