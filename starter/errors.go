package starter

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// IsError reports whether an error, or one that it wraps, has a type.
func IsError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Error is the error of a run that did not end well.
type Error = runs.Error

// TerminatedError is the error of a run that was terminated: the server ended it, without a
// result. Its host workers stop its processes.
type TerminatedError struct {
	RunID string
	// Reason is the reason that was given for the termination, and By who gave it.
	Reason, By string
}

func (e *TerminatedError) Error() string { return "run " + e.RunID + " was " + e.how() }

// how returns who terminated the run, and why.
func (e *TerminatedError) how() string {
	text := outcome.Terminated
	if e.By != "" {
		text += " by " + e.By
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text + " and left no result"
}

// Result returns a stand-in for a result: the run has failed for an unknown reason.
func (e *TerminatedError) Result() *spec.RunResult {
	return &spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: runs.ErrTerminated, Message: e.Error(), ExitCode: exitcode.Machinery}
}

// NotFoundError reports that the server does not know a run.
type NotFoundError struct {
	RunID string
	// Hint is a similar name that may have been meant, or "".
	Hint string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no run %q on this server; %s", e.RunID, cmp.Or(e.Hint, "`clusterrun list` shows all runs"))
}

// RunningError reports that a run ID is in use.
type RunningError = runs.RunningError

// RefusedError reports that a run refused a request. Nothing was done.
type RefusedError struct {
	// Reason is the run's reason.
	Reason string
	// Invalid reports whether the request would be refused in any state of the run.
	Invalid bool
	// Tasks are the tasks for which the request was refused, if others could meet it.
	Tasks []spec.TaskProblem
}

func (e *RefusedError) Error() string { return e.Reason }

// EndedError reports that a request came too late.
type EndedError struct{ RunID string }

func (e *EndedError) Error() string {
	return fmt.Sprintf("run %s has ended", e.RunID)
}

// UnansweredError is returned if a run is open but no worker answers for its workflow.
type UnansweredError struct {
	RunID string
	Cause error
}

func (e *UnansweredError) Error() string {
	frozen := ""
	if !servererror.IsUnpolled(e.Cause) {
		frozen = ", or its host worker is frozen or cut off"
	}
	return fmt.Sprintf("run %s does not answer: no host worker executes its workflow at the moment%s; "+
		"is a `clusterrun worker` or `clusterrun dev` running for its queue?", e.RunID, frozen)
}

// Unwrap returns the client's error.
func (e *UnansweredError) Unwrap() error { return e.Cause }

// StuckError is returned while no worker executes the workflow of a run, or its workflow tasks
// keep failing.
type StuckError struct {
	RunID string
	// Attempt is the attempt of the workflow task. If it is 1, no worker has taken it.
	Attempt int
	// Paused reports whether Temporal has paused the workflow.
	Paused bool
}

func (e *StuckError) Error() string {
	if e.Paused {
		return fmt.Sprintf("run %s is paused in Temporal: it decides nothing until it is unpaused there", e.RunID)
	}
	if e.Attempt > 1 {
		return fmt.Sprintf("run %s is stuck: its workflow failed %d times in a row; see the log of its host worker", e.RunID, e.Attempt-1)
	}
	return fmt.Sprintf("run %s is pending: no host worker executes it; start `clusterrun worker` or `clusterrun dev` for its queue", e.RunID)
}
