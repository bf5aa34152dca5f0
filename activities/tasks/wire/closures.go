package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// PathClosures is the path at which a process that serves closures reports its outcomes and
// gets closures.
const PathClosures = "/v1/closures/next"

// Limits of [PathClosures].
const (
	// MaxProcess bounds the name of a process, in bytes.
	MaxProcess = 64
	// MaxSlots bounds the number of closures that one process may call at the same time.
	MaxSlots = 1024
)

// KindsOfErrors are the kinds of outcomes of a call that have an error. The other kind is
// [closure.OutcomeValue].
var KindsOfErrors = []closure.OutcomeKind{closure.OutcomeError, closure.OutcomeInput, closure.OutcomeCancelled, closure.OutcomeUnavailable}

// Codes of problems with closures.
const (
	// CodeClosuresAway means that the host worker is being restarted; ask again.
	CodeClosuresAway = "closures_away"
	// CodeProcessEnded means that the process counts as ended.
	CodeProcessEnded = "process_ended"
)

// ClosuresRequest is a request of a process that serves closures. It has the whole state of
// the process, so that nothing depends on which of its requests have arrived before.
type ClosuresRequest struct {
	// Process is a random name that no other process has.
	Process string `json:"process"`
	// Seq counts the requests of the process, from 1. A repeated request has the same number.
	// A newer request makes the host answer a waiting older one at once.
	Seq uint64 `json:"seq"`
	// Got is the number of the last answer with news that the process has received, or 0 at
	// first.
	Got uint64 `json:"got,omitempty"`
	// Slots is the number of closures that it calls at the same time, or 0 if it no longer
	// serves.
	Slots int `json:"slots,omitempty"`
	// Held are the closures that it has, and closures whose outcomes have not been
	// acknowledged, except those in this request.
	Held []uint64 `json:"held,omitempty"`
	// Done are the outcomes of closures that have ended.
	Done []CallOutcome `json:"done,omitempty"`
	// Returned are closures that it hands back without an outcome, for others to call.
	Returned []uint64 `json:"returned,omitempty"`
	// Free is the number of idle slots. 0 means that it wants no closures.
	Free int `json:"free,omitempty"`
	// Wait is the longest time to wait for news, in seconds. 0 means not at all.
	Wait float64 `json:"wait,omitempty"`
}

// CallOutcome is the outcome of a call of a closure.
type CallOutcome struct {
	ID uint64 `json:"id"`
	// Call is the number of the [Call].
	Call uint64 `json:"call,omitempty"`
	// Kind is [closure.OutcomeValue], the default, or one of [KindsOfErrors].
	Kind closure.OutcomeKind `json:"kind,omitempty"`
	// Value is the result of the function. If empty, it is null.
	Value json.RawMessage `json:"value,omitempty"`
	Error *closure.Error  `json:"error,omitempty"`
}

// ClosuresAnswer is the answer to a serving process.
type ClosuresAnswer struct {
	// News is the number of this answer, if it has closures or cancellations that the process
	// has not acknowledged yet. Of two answers with the same number, the second brings no
	// closures that the first does not have.
	News uint64 `json:"news,omitempty"`
	// Closures are the closures to call, in this order.
	Closures []Call `json:"closures,omitempty"`
	// Resources are the resources of the closures that the process may not know yet.
	Resources []closure.Resource `json:"resources,omitempty"`
	// Released are resources that are no longer needed: the process drops what it has built.
	Released []ReleasedResources `json:"released,omitempty"`
	// Cancel are the IDs of closures that it must no longer call.
	Cancel []uint64 `json:"cancel,omitempty"`
	// Stop reports whether a stop of all tasks of the run is requested. The process is given no
	// more closures: it hands back what it has not begun, and no longer serves once the calls
	// that it has begun have ended.
	Stop bool `json:"stop,omitempty"`
}

// Call is a closure for a process to call.
type Call struct {
	closure.Closure
	// Call is the number of this call. It tells its outcome apart from the outcome of another
	// call of the closure.
	Call uint64 `json:"call"`
}

// ReleasedResources are a range of resources.
type ReleasedResources struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// CheckFunction returns the problem with the name of a function, or an empty string if it is
// valid.
func CheckFunction(name string) string {
	switch {
	case name == "" || len(name) > closure.MaxFunctionName:
		return fmt.Sprintf("it has %d bytes; want 1 to %d", len(name), closure.MaxFunctionName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "has control characters or is not UTF-8"
	}
	return ""
}
