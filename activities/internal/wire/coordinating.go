package wire

import "github.com/clusterrun/clusterrun/workflows/closure"

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

// CodeQueueRefused: the queue does not take a request.
const CodeQueueRefused = "queue_refused"

// CoordinatorOpened says where the history of the queue is.
type CoordinatorOpened struct {
	// At is a position in it: what is scheduled from now on ends after it.
	At string `json:"at"`
	// Room is how many closures can be scheduled before the queue says how much room it
	// has.
	Room int `json:"room"`
}

// ScheduleRequest brings closures to the queue.
type ScheduleRequest struct {
	// Session is a random name that no other process has.
	Session string `json:"session"`
	// Batch counts such requests of the session, from 1. One that is sent again has the
	// same, and the same closures.
	Batch uint64 `json:"batch"`
	// Epoch is the highest that the process was told when the closures were scheduled.
	Epoch    uint64            `json:"epoch,omitempty"`
	Closures []closure.Closure `json:"closures"`
}

// Scheduled is the answer.
type Scheduled struct {
	// IDs are those of the closures, in the order of the request.
	IDs []uint64 `json:"ids"`
	// Known are the places of those that were there before, by their keys.
	Known []int  `json:"known,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
	// Raised is the queue's error, which this request has taken. Then, and where
	// Cancelled is set, its closures are cancelled.
	Raised    *closure.Error `json:"raised,omitempty"`
	Cancelled bool           `json:"cancelled,omitempty"`
	// Room is how many more closures can be queued. nil: any number.
	Room *int `json:"room,omitempty"`
}

// WaitRequest asks whether all is done, or waits for that.
type WaitRequest struct {
	Session string `json:"session"`
	// Call counts such requests of the session, from 1. One that is sent again has the
	// same.
	Call uint64 `json:"call"`
}

// ResourceRequest makes a per-worker resource known.
type ResourceRequest struct {
	Session string `json:"session"`
	// Number counts such requests of the session, from 1.
	Number uint64 `json:"number"`
	closure.Resource
}

// ReleaseRequest says that nobody needs resources any more that the session has
// created. Its closures with them have been answered before.
type ReleaseRequest struct {
	Session   string   `json:"session"`
	Resources []uint64 `json:"resources"`
}

// OutcomesRequest asks what has come of closures.
type OutcomesRequest struct {
	Session string `json:"session"`
	// After is the position that the process has read to.
	After string `json:"after"`
	// Wait is how long to wait for something new, in seconds.
	Wait float64 `json:"wait,omitempty"`
	// Tuples reports whether values keep the objects that stand for tuples of Python.
	Tuples bool `json:"tuples,omitempty"`
}

// CoordinatorOutcomes are what closures of the queue have come to, whoever has
// scheduled them: first Outcomes, and then Cancelled.
type CoordinatorOutcomes struct {
	// At is where the history was read to.
	At        string              `json:"at"`
	Outcomes  []closure.Outcome   `json:"outcomes,omitempty"`
	Cancelled []CancelledClosures `json:"cancelled,omitempty"`
}

// CancelledClosures are closures that the queue has cancelled by itself.
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
