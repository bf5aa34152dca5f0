package wire

import (
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
// the process, which takes only the answer to its newest request. So nothing depends on which of
// its requests and answers have arrived.
type ClosuresRequest struct {
	// Process is a random name that no other process has.
	Process string `json:"process"`
	// Seq counts the requests of the process, from 1. An older request than the last one is
	// ignored.
	Seq uint64 `json:"seq"`
	// Slots is the number of closures that it calls at the same time, or 0 if it no longer
	// serves, and Free the number that it takes now.
	Slots int `json:"slots,omitempty"`
	Free  int `json:"free,omitempty"`
	// Held are the closures that it has, except those in Done, and Ending those of them that
	// it was told to cancel. Others that it was given are called elsewhere.
	Held   []uint64 `json:"held,omitempty"`
	Ending []uint64 `json:"ending,omitempty"`
	// Resources are those that it knows.
	Resources []uint64 `json:"resources,omitempty"`
	// Done are outcomes of closures: values, or of [KindsOfErrors]. The answer acknowledges them.
	Done []closure.Outcome `json:"done,omitempty"`
	// Wait is the longest time to wait for an answer with something in it, in seconds.
	Wait float64 `json:"wait,omitempty"`
}

// ClosuresAnswer is the answer to a serving process.
type ClosuresAnswer struct {
	// Closures are the closures to call.
	Closures []closure.Closure `json:"closures,omitempty"`
	// Resources are the resources of the closures that the process does not know.
	Resources []closure.Resource `json:"resources,omitempty"`
	// Released are resources that are no longer needed: the process drops what it has built.
	Released []uint64 `json:"released,omitempty"`
	// Cancel are the IDs of closures that it must no longer call.
	Cancel []uint64 `json:"cancel,omitempty"`
	// Stop reports whether a stop of all tasks of the run is requested. The process takes no
	// more closures, and no longer serves once its calls have ended.
	Stop bool `json:"stop,omitempty"`
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
