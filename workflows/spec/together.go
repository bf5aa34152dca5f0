package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Stopping together works like TensorFlow's Coordinator, with processes instead of threads. Any
// task or an operator can ask the whole run to stop. Every task is notified and exits, and the
// first error in such a request becomes the verdict.

// StopTogether describes how a run's tasks stop together.
type StopTogether struct {
	Grace           *Duration `json:"grace,omitempty"`
	CleanErrors     []string  `json:"clean_errors,omitzero"`
	IgnoreLiveTasks bool      `json:"ignore_live_tasks,omitempty"`
}

// DefaultCleanErrors are the error kinds that mark the end of the input.
var DefaultCleanErrors = []string{"OutOfRangeError", "StopIteration", "EOFError", "EOF"}

// TogetherRequest is the input of [UpdateStopTogether].
type TogetherRequest struct {
	// Task is the requesting task, or empty for an operator.
	Task string `json:"task,omitempty"`
	// Generation is the task's generation.
	Generation int `json:"generation,omitempty"`
	// Key identifies the request. A request with the same key is a repetition.
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Error is the reason for the request if something went wrong.
	Error *TogetherError `json:"error,omitempty"`
	// BootNanos is the time when the task sent the request, on its host's monotonic clock since
	// boot. It orders the error among that host's exits.
	BootNanos int64 `json:"boot_ns,omitempty"`
}

// TogetherError is an error in a request to stop.
type TogetherError struct {
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message"`
	// Traceback is the error's traceback. Only its last bytes are kept.
	Traceback string `json:"traceback,omitempty"`
}

// Stopping describes whether a run's tasks are stopping together.
type Stopping struct {
	// Seq increases with every stop and notice. A value with a lower Seq is older.
	Seq int `json:"seq"`
	// Stop reports whether the tasks are stopping together. If not, all other fields except
	// Notice are empty.
	Stop bool `json:"stop"`
	// By is the task that asked first, or empty for an operator.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Error is the first error, which becomes the run's verdict.
	Error *TogetherError `json:"error,omitempty"`
	// Clean reports whether Error's kind does not count as a failure.
	Clean bool `json:"clean,omitempty"`
	// Asked is the time of the request, and Deadline the time when remaining tasks are stopped.
	// Deadline is zero if the run was already ending.
	Asked    time.Time `json:"asked,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Notice is the current notice even if the tasks are not stopping together.
	Notice *StopNotice `json:"notice,omitempty"`
}

// Maximum sizes of a request's strings, in bytes. Every host of the run receives them, and the
// run's status and result repeat them.
const (
	maxTogetherKind      = 100
	maxTogetherWords     = 1024
	maxTogetherTraceback = 8192
)

// Bounded returns the request with its strings truncated, and without control characters, since
// reports print them on other people's terminals.
func (r TogetherRequest) Bounded() TogetherRequest {
	r.Reason = shorten.Text(EscapeControl(r.Reason), maxTogetherWords)
	if r.Error != nil {
		r.Error = &TogetherError{
			Kind:      shorten.Text(EscapeControl(r.Error.Kind), maxTogetherKind),
			Message:   shorten.Text(EscapeControl(r.Error.Message), maxTogetherWords),
			Traceback: shorten.Traceback(EscapeControl(r.Error.Traceback), maxTogetherTraceback),
		}
	}
	return r
}

// Clean reports whether an error kind makes a clean stop. An error without a kind never does. The
// spec must include defaults.
func (s StopTogether) Clean(kind string) bool {
	name := kind[strings.LastIndex(kind, ".")+1:]
	return kind != "" && (slices.Contains(s.CleanErrors, kind) || slices.Contains(s.CleanErrors, name))
}

// String formats the error as a program would print it.
func (e TogetherError) String() string {
	switch {
	case e.Kind == "":
		return e.Message
	case e.Message == "":
		return e.Kind
	default:
		return e.Kind + ": " + e.Message
	}
}

// String returns who requested the stop and why, in one line, or "" if there is no stop.
func (s Stopping) String() string {
	if !s.Stop {
		return ""
	}
	text := s.By
	text = cmp.Or(text, "an operator")
	text += " asked all tasks to stop"
	var why []string
	if s.Reason != "" {
		why = append(why, firstLine(s.Reason))
	}
	if s.Error != nil {
		words := firstLine(s.Error.String())
		if s.Clean {
			words += " (a clean stop)"
		}
		why = append(why, words)
	}
	if len(why) > 0 {
		text += ": " + strings.Join(why, "; ")
	}
	return text
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// maxTogetherKey limits a stop request's key, in bytes.
const maxTogetherKey = 200

// checkAsker checks the requesting task, which is empty for an operator.
func checkAsker(c *checker, task string, generation int) {
	if task != "" {
		checkTaskName(c, "task", task)
	}
	if generation < 0 {
		c.add("generation", fmt.Sprintf("must be at least 0, not %d", generation), "omit it for the first start")
	}
}

// Validate checks everything except whether the task exists, which the run checks. The error is
// an [*InvalidRequestError] with all problems.
func (r TogetherRequest) Validate() error {
	c := &checker{}
	checkAsker(c, r.Task, r.Generation)
	if len(r.Key) > maxTogetherKey {
		c.add("key", fmt.Sprintf("has %d bytes; a key may have at most %d", len(r.Key), maxTogetherKey), "use a shorter key")
	}
	if e := r.Error; e != nil && e.Kind == "" && e.Message == "" {
		c.add("error", "is empty", `set its kind or its message, such as {"kind": "ValueError", "message": "bad batch"}`)
	}
	return c.requestError()
}
