package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// PathClosures is where a process that serves closures says what it has done and
// gets what to do next.
const PathClosures = "/v1/closures/next"

// Limits of [PathClosures].
const (
	// MaxProcess is the longest name of a process, in bytes.
	MaxProcess = 64
	// MaxSlots is how many closures one process may call at the same time.
	MaxSlots = 1024
	// MaxFunctions is how many functions one process may have registered, and
	// MaxFunctionBytes what their names may have together: the queue of the run is told
	// them, and so is whoever asks it.
	MaxFunctions     = 1000
	MaxFunctionBytes = 64 << 10
	// MaxWait is how long a request may wait for closures, in seconds.
	MaxWait = 20
)

// KindsOfErrors are the kinds of outcomes of a call that have an error. The other one is
// [closure.OutcomeValue].
var KindsOfErrors = []closure.OutcomeKind{closure.OutcomeError, closure.OutcomeInput, closure.OutcomeCancelled, closure.OutcomeUnavailable}

// Codes of problems with closures.
const (
	// CodeClosuresAway: the host is being started again; ask again.
	CodeClosuresAway = "closures_away"
	// CodeProcessEnded: the process counts as ended.
	CodeProcessEnded = "process_ended"
)

// ClosuresRequest is what a process that serves closures says: how it stands, all
// of it, so that nothing depends on which of its requests have arrived before.
type ClosuresRequest struct {
	// Process is a random name that no other process has.
	Process string `json:"process"`
	// Seq counts the requests of the process, from 1. One that is sent again has the
	// same. A newer one has an older one that waits answered at once.
	Seq uint64 `json:"seq"`
	// Got is the number of the last answer with news that the process has. 0: none.
	Got uint64 `json:"got,omitempty"`
	// Slots is how many closures it calls at the same time. 0: it serves no more.
	Slots int `json:"slots,omitempty"`
	// Functions are the names it has registered. None: as before.
	Functions []string `json:"functions,omitempty"`
	// Held are the closures that it has and has not been answered to the outcomes
	// of, those in this request left out.
	Held []uint64 `json:"held,omitempty"`
	// Begun are those of them that it calls at the moment, as far as it says.
	Begun []uint64 `json:"begun,omitempty"`
	// Done are those that have ended.
	Done []CallOutcome `json:"done,omitempty"`
	// Returned are those that it gives back without an outcome, for others to call.
	Returned []uint64 `json:"returned,omitempty"`
	// Free is how many slots have nothing to do. 0: it wants no closures.
	Free int `json:"free,omitempty"`
	// Wait is how long to wait for news, in seconds. 0: not at all.
	Wait float64 `json:"wait,omitempty"`
}

// CallOutcome is how a call of a closure ended.
type CallOutcome struct {
	ID uint64 `json:"id"`
	// Call is that of the [Call].
	Call uint64 `json:"call,omitempty"`
	// Kind is [closure.OutcomeValue], which is also no kind, or one of [KindsOfErrors].
	Kind closure.OutcomeKind `json:"kind,omitempty"`
	// Value is what the function returned. None: null.
	Value json.RawMessage `json:"value,omitempty"`
	Error *closure.Error  `json:"error,omitempty"`
	// Seconds is how long the call took.
	Seconds float64 `json:"seconds,omitempty"`
}

// ClosuresAnswer is what a serving process is to do.
type ClosuresAnswer struct {
	// News is the number of this answer, where it has closures or cancellations that
	// the process has not acknowledged yet. Of two answers with the same number the
	// second brings no closures that the first has not.
	News uint64 `json:"news,omitempty"`
	// Closures are to be called, in this order.
	Closures []Call `json:"closures,omitempty"`
	// Resources are those of them that the process may not know yet.
	Resources []closure.Resource `json:"resources,omitempty"`
	// Released are resources that nobody needs any more: the process drops what it has
	// built of them. An answer with an old number may have them, too.
	Released []ReleasedResources `json:"released,omitempty"`
	// Cancel are those that it is not to call any more.
	Cancel []CallCancel `json:"cancel,omitempty"`
	// Introduce reports whether the host does not know the functions of the process.
	Introduce bool `json:"introduce,omitempty"`
	// Stop reports whether the tasks of the run are to stop together. The process is given no closure
	// any more: it hands back what it has not begun, and serves no more once the calls
	// that it has begun have ended.
	Stop bool `json:"stop,omitempty"`
}

// Call is a closure for a process to call.
type Call struct {
	closure.Closure
	// Call is for its outcome, to tell it from that of another call of the closure.
	Call uint64 `json:"call"`
}

// ReleasedResources are a range of resources.
type ReleasedResources struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// CallCancel is a closure that is not to be called any more.
type CallCancel struct {
	ID uint64 `json:"id"`
	// Timeout reports whether it took too long; if not, it was cancelled.
	Timeout bool `json:"timeout,omitempty"`
}

// CheckFunction returns what is wrong with the name of a function; nothing: it is one.
func CheckFunction(name string) string {
	switch {
	case name == "" || len(name) > closure.MaxFunctionName:
		return fmt.Sprintf("it has %d bytes; want 1 to %d", len(name), closure.MaxFunctionName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "it has control characters, or is not UTF-8"
	}
	return ""
}
