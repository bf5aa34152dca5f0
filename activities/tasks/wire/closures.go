package wire

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// PathClosures is the path on which a serving process reports outcomes and gets closures.
const PathClosures = "/v1/closures/next"

// Limits of [PathClosures].
const (
	// MaxProcess limits a process's name, in bytes.
	MaxProcess = 64
	// MaxSlots limits the closures that a process may call at a time.
	MaxSlots = 1024
)

// Codes of problems with closures.
const (
	// CodeClosuresAway means that the host worker is restarting; retry.
	CodeClosuresAway = "closures_away"
	// CodeProcessEnded means that the process counts as ended.
	CodeProcessEnded = "process_ended"
)

// ClosuresRequest is a request from a process that serves closures. It contains the process's
// whole state, and the process uses only the answer to its newest request. So it does not matter
// which of its requests and answers have arrived.
type ClosuresRequest struct {
	// Process is a random name, unique to the process.
	Process string `json:"process"`
	// Seq counts the process's requests, from 1. A request older than the last one is ignored.
	Seq uint64 `json:"seq"`
	// Slots is the number of closures that the process calls at a time, or 0 if it no longer
	// serves, and Free the number that it accepts now.
	Slots int `json:"slots,omitempty"`
	Free  int `json:"free,omitempty"`
	// Held lists the closures that the process holds, except those in Done, and Ending the held
	// closures that it is cancelling. Its remaining closures are called elsewhere.
	Held   []uint64 `json:"held,omitempty"`
	Ending []uint64 `json:"ending,omitempty"`
	// Resources lists known resources.
	Resources []uint64 `json:"resources,omitempty"`
	// Done lists closure outcomes: the first four kinds, or unavailable. The answer acknowledges them.
	Done []closure.Outcome `json:"done,omitempty"`
	// Wait is the maximum time to wait for a non-empty answer, in seconds.
	Wait float64 `json:"wait,omitempty"`
}

// ClosuresAnswer is the answer to a serving process.
type ClosuresAnswer struct {
	Closures []closure.Closure `json:"closures,omitempty"`
	// Resources lists the closures' resources that the process does not know.
	Resources []closure.Resource `json:"resources,omitempty"`
	// Released lists resources that are no longer needed. The process drops what it built.
	Released []uint64 `json:"released,omitempty"`
	// Cancel lists IDs of closures that must not be called.
	Cancel []uint64 `json:"cancel,omitempty"`
	// Stop reports whether a stop of all the run's tasks is requested. The process accepts no more
	// closures, and stops serving after its current calls.
	Stop bool `json:"stop,omitempty"`
}

// CheckFunction returns the problem with a function name, or an empty string if it is valid.
func CheckFunction(name string) string {
	switch {
	case name == "" || len(name) > closure.MaxFunctionName:
		return fmt.Sprintf("it has %d bytes; use 1 to %d", len(name), closure.MaxFunctionName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "contains control characters or is not UTF-8"
	}
	return ""
}
