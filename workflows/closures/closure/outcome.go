package closure

import (
	"encoding/json"
	"strings"
)

// OutcomeKind is the kind of an [Outcome].
type OutcomeKind string

// The values of [OutcomeKind]. The first four end the closure. After the remaining ones the queue
// decides whether it is final.
const (
	OutcomeValue     OutcomeKind = "value"
	OutcomeError     OutcomeKind = "error"     // the function returned an error
	OutcomeInput     OutcomeKind = "input"     // a resource among its arguments could not be built
	OutcomeCancelled OutcomeKind = "cancelled" // on request
	// OutcomeLost means that the process exited before the call returned. Started reports whether
	// the call had started.
	OutcomeLost OutcomeKind = "lost"
	// OutcomeUnavailable means that another task that the function needs, such as a parameter
	// server, does not answer. Error.Task names that task.
	OutcomeUnavailable OutcomeKind = "unavailable"
	// OutcomeRaised is the queue's error, raised by the client. No closure has this outcome.
	OutcomeRaised OutcomeKind = "raised"
)

// OutcomeKinds lists the kinds of outcomes that closures may have.
var OutcomeKinds = []OutcomeKind{
	OutcomeValue, OutcomeError, OutcomeInput, OutcomeCancelled, OutcomeLost, OutcomeUnavailable,
}

// Outcome is the outcome of a closure or of a single call.
type Outcome struct {
	ID   uint64      `json:"id"`
	Kind OutcomeKind `json:"kind,omitempty"` // "" means a value
	// Value is the JSON value. None is null.
	Value json.RawMessage `json:"value,omitempty"`
	Error *Error          `json:"error,omitempty"`
	// Task is the task that executed the closure.
	Task string `json:"task,omitempty"`
	// Started reports whether a lost call had started.
	Started bool `json:"started,omitempty"`
}

// Failure returns an outcome's error, or nil for a value.
func (o Outcome) Failure() *Error {
	switch {
	case o.Kind == "" || o.Kind == OutcomeValue:
		return nil
	case o.Error != nil:
		return o.Error
	case o.Kind == OutcomeCancelled:
		return &Error{Kind: ErrCancelled, Message: TextCancelled, Closure: o.ID}
	}
	return &Error{Message: "the closure's outcome is " + string(o.Kind), Closure: o.ID}
}

// Error is a closure's error.
type Error struct {
	// Kind is the error's kind, such as ValueError, or one of the kinds below.
	Kind      string `json:"kind,omitempty"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
	// Closure is the closure that failed, and Task the task that executed it, or for
	// [OutcomeUnavailable] the task that did not answer.
	Closure uint64 `json:"closure,omitempty"`
	Task    string `json:"task,omitempty"`
}

func (e *Error) Error() string {
	if e.Kind == "" || strings.HasPrefix(e.Message, e.Kind) {
		return e.Message
	}
	return e.Kind + ": " + e.Message
}

// Kinds of errors that the queue itself reports.
const (
	ErrCancelled       = "CancelledError"
	ErrInput           = "InputError"
	ErrUnavailable     = "UnavailableError"
	ErrQuarantined     = "QuarantinedError"
	ErrUnknownFunction = "UnknownFunctionError"
	ErrValueTooLarge   = "ValueTooLargeError"
	ErrNotJSON         = "NotJSONError"
	ErrLost            = "WorkerLostError"
)

// Error messages that TensorFlow uses.
const (
	TextCancelled = "The corresponding function is cancelled. Please reschedule the function."
	TextAborted   = "The corresponding function is aborted. Please reschedule the function."
)
