package spec

import "time"

// Stopping together: any task, or an operator, asks the whole run to stop, every
// task learns of it and ends by itself, and the first error that came with such a
// wish is the verdict. It is TensorFlow's Coordinator over processes in place of
// threads.

// StopTogether says how the tasks of a run stop together.
type StopTogether struct {
	// Grace is how long the tasks have, from the stop on, to end by themselves.
	// Default 2m, as in the seed.
	Grace *Duration `json:"grace,omitempty"`
	// CleanErrors are the kinds of errors that make a clean stop: they are no
	// failure. Default [DefaultCleanErrors]; a list replaces it, and an empty one
	// leaves none.
	CleanErrors []string `json:"clean_errors,omitzero"`
	// IgnoreLiveTasks: tasks that have not ended when Grace is over are stopped
	// without that being a failure.
	IgnoreLiveTasks bool `json:"ignore_live_tasks,omitempty"`
}

// DefaultCleanErrors are the kinds that say that there is no more input.
var DefaultCleanErrors = []string{"OutOfRangeError", "StopIteration", "EOFError", "EOF"}

// TogetherRequest is the input of [UpdateStopTogether].
type TogetherRequest struct {
	// Task asks for the stop. Empty: an operator does.
	Task string `json:"task,omitempty"`
	// Key names the wish. The same key again is the same wish.
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Error is why, where something went wrong.
	Error *TogetherError `json:"error,omitempty"`
}

// TogetherError is an error that comes with the wish to stop.
type TogetherError struct {
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message"`
	// Traceback is where it happened. Its last bytes are kept.
	Traceback string `json:"traceback,omitempty"`
}

// Stopping says whether the tasks of a run are stopping together.
type Stopping struct {
	// Seq grows with every stop and every clear. What has a lower one is older.
	Seq int `json:"seq"`
	// Stop: they are. Without it the stop was cleared, and the rest is empty.
	Stop bool `json:"stop"`
	// By is the task that asked first. Empty: an operator did.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Error is the first error, which is the verdict of the run.
	Error *TogetherError `json:"error,omitempty"`
	// Clean: Error is of a kind that is none.
	Clean    bool      `json:"clean,omitempty"`
	Asked    time.Time `json:"asked,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
}

// ClearStopRequest is the input of [UpdateClearStop].
type ClearStopRequest struct {
	// Task clears it. Empty: an operator does.
	Task string `json:"task,omitempty"`
}
