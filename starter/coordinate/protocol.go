package coordinate

import (
	"encoding/json"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Operations of a [Request].
const (
	OpSchedule = "schedule"
	OpCall     = "call"
	OpFetch    = "fetch"
	OpJoin     = "join"
	OpDone     = "done"
	OpCancel   = "cancel"
)

// Events of an [Answer].
const (
	EventOpen = "open"
	EventOver = "over"
)

// Kinds of errors of an [Answer] beside those of closures.
const (
	// ErrRefused says that the request is not taken, and what would be.
	ErrRefused = "RefusedError"
	// ErrRunEnded says that the run has ended.
	ErrRunEnded = "RunEndedError"
	// ErrCoordinator says that the queue could not be asked.
	ErrCoordinator = "CoordinatorError"
)

// Request is one line of input.
type Request struct {
	ID       uint64            `json:"id"`
	Op       string            `json:"op"`
	Closures []closure.Closure `json:"closures,omitempty"`
	IDs      []uint64          `json:"ids,omitempty"`
}

// schedules: it puts closures into the queue.
func (r *Request) schedules() bool { return r.Op == OpSchedule || r.Op == OpCall }

// Answer is one line of output.
type Answer struct {
	ID    uint64 `json:"id,omitempty"`
	Event string `json:"event,omitempty"`
	// Run is the run, with [EventOpen].
	Run string `json:"run,omitempty"`
	// Message says how the run has ended, with [EventOver].
	Message  string    `json:"message,omitempty"`
	IDs      []uint64  `json:"ids,omitempty"`
	Outcomes []Outcome `json:"outcomes,omitempty"`
	Done     *bool     `json:"done,omitempty"`
	// Cancelled and Told are those of [closure.CancelAnswer].
	Cancelled int            `json:"cancelled,omitempty"`
	Told      int            `json:"told,omitempty"`
	Error     *closure.Error `json:"error,omitempty"`
}

// Outcome is how a closure ended: with a value, or with an error.
type Outcome struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error *closure.Error  `json:"error,omitempty"`
	// Lost reports whether the error is neither the function's own nor a refusal: its process
	// has ended, or the run.
	Lost bool `json:"lost,omitempty"`
}
