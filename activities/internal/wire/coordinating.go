package wire

import "encoding/json"

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
	Epoch    uint64    `json:"epoch,omitempty"`
	Closures []Closure `json:"closures"`
}

// Closure is a function to be called.
type Closure struct {
	Function string `json:"function"`
	// Args is an array, Kwargs an object.
	Args   json.RawMessage `json:"args,omitempty"`
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
	// Resources are the IDs of the resources among them.
	Resources []uint64        `json:"resources,omitempty"`
	Options   *ClosureOptions `json:"options,omitempty"`
}

// ClosureOptions are rarely needed.
type ClosureOptions struct {
	Key      string `json:"key,omitempty"`
	Retry    bool   `json:"retry,omitempty"`
	Task     string `json:"task,omitempty"`
	Detached bool   `json:"detached,omitempty"`
	Priority int    `json:"priority,omitempty"`
	// Timeout is a time span such as "1.5s".
	Timeout   string `json:"timeout,omitempty"`
	Retries   int    `json:"retries,omitempty"`
	MaxLosses *int   `json:"max_losses,omitempty"`
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
	Raised    *ClosureError `json:"raised,omitempty"`
	Cancelled bool          `json:"cancelled,omitempty"`
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

// Waited is the answer.
type Waited struct {
	// Done: nothing is queued or executing.
	Done  bool   `json:"done"`
	Epoch uint64 `json:"epoch,omitempty"`
	// Raised is the queue's error, which this request has taken.
	Raised *ClosureError `json:"raised,omitempty"`
}

// ResourceRequest makes a per-worker resource known.
type ResourceRequest struct {
	Session string `json:"session"`
	// Number counts such requests of the session, from 1.
	Number   uint64          `json:"number"`
	Function string          `json:"function"`
	Args     json.RawMessage `json:"args,omitempty"`
	Kwargs   json.RawMessage `json:"kwargs,omitempty"`
}

// ResourceCreated is the answer.
type ResourceCreated struct {
	ID uint64 `json:"id"`
}

// ReleaseRequest says that nobody needs resources any more that the session has
// created. Its closures with them have been answered before.
type ReleaseRequest struct {
	Session   string   `json:"session"`
	Resources []uint64 `json:"resources"`
}

// ResourcesReleased is the answer.
type ResourcesReleased struct {
	// Released is how many of them there were, and not released before.
	Released int `json:"released"`
}

// CancelRequest has closures not be called any more.
type CancelRequest struct {
	// Closures are their IDs. None: all.
	Closures []uint64 `json:"closures,omitempty"`
}

// CancelRequested is the answer.
type CancelRequested struct {
	// Cancelled have not been called, and Told are being called.
	Cancelled int `json:"cancelled"`
	Told      int `json:"told"`
}

// OutcomesRequest asks what has come of closures.
type OutcomesRequest struct {
	Session string `json:"session"`
	// After is the position that the process has read to.
	After string `json:"after"`
	// Wait is how long to wait for something new, in seconds.
	Wait float64 `json:"wait,omitempty"`
	// Tuples: keep the objects that stand for tuples of Python in values.
	Tuples bool `json:"tuples,omitempty"`
}

// CoordinatorOutcomes are what closures of the queue have come to, whoever has
// scheduled them: first Outcomes, and then Cancelled.
type CoordinatorOutcomes struct {
	// At is where the history was read to.
	At        string              `json:"at"`
	Outcomes  []Outcome           `json:"outcomes,omitempty"`
	Cancelled []CancelledClosures `json:"cancelled,omitempty"`
}

// Outcome is what a closure has come to.
type Outcome struct {
	ID uint64 `json:"id"`
	// Kind is [KindValue], which is also no kind, [KindError], [KindInput] or
	// [KindCancelled].
	Kind  string          `json:"kind,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
	Error *ClosureError   `json:"error,omitempty"`
	// Task has called it.
	Task string `json:"task,omitempty"`
}

// CancelledClosures are closures that the queue has cancelled by itself.
type CancelledClosures struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Text  string `json:"text,omitempty"`
}

// ClosureError is why a closure failed.
type ClosureError struct {
	Kind      string `json:"kind,omitempty"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
	Closure   uint64 `json:"closure,omitempty"`
	Task      string `json:"task,omitempty"`
	// Args is an array of what the exception was made of.
	Args json.RawMessage `json:"args,omitempty"`
}

// FindRequest asks for closures by their IDs, however old.
type FindRequest struct {
	Closures []uint64 `json:"closures"`
	Tuples   bool     `json:"tuples,omitempty"`
}

// Found has the outcomes of those that have ended.
type Found struct {
	Outcomes []Outcome `json:"outcomes"`
}
