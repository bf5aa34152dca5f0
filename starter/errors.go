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

// IsError reports whether err or an error that it wraps has type E.
func IsError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Error reports a run that did not succeed.
type Error = runs.Error

// TerminatedError reports that a run was terminated: the server closed it without a result. Its
// host workers stop its processes.
type TerminatedError struct {
	RunID string
	// Reason is the reason given for the termination, and By names who gave it.
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

// Result returns a stand-in for the missing result: the run failed for an unknown reason.
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
	return fmt.Sprintf("there is no run %q on this server; %s", e.RunID, cmp.Or(e.Hint, "`clusterrun list` shows all runs"))
}

// RunningError reports that a run ID is in use.
type RunningError = runs.RunningError

// RefusedError reports that a run refused a request and did nothing.
type RefusedError struct {
	// Reason is the reason that the run gave.
	Reason string
	// Invalid reports whether the run would refuse the request in any state.
	Invalid bool
	// Tasks lists the tasks that caused the refusal, if the request was valid for other tasks.
	Tasks []spec.TaskProblem
}

func (e *RefusedError) Error() string { return e.Reason }

// EndedError reports that a request came too late.
type EndedError struct{ RunID string }

func (e *EndedError) Error() string {
	return fmt.Sprintf("run %s has ended", e.RunID)
}

// UnansweredError reports that a run is open, but no worker answers for its workflow.
type UnansweredError struct {
	RunID string
	Cause error
}

func (e *UnansweredError) Error() string {
	frozen := ""
	if !servererror.IsUnpolled(e.Cause) {
		frozen = ", or its host worker is frozen or disconnected"
	}
	return fmt.Sprintf("run %s does not answer: no host worker executes its workflow at present%s; is a `clusterrun worker` or `clusterrun dev` running for its queue?", e.RunID, frozen)
}

// Unwrap returns the client's error.
func (e *UnansweredError) Unwrap() error { return e.Cause }

// StuckError reports that no worker is executing a run's workflow, or that its workflow tasks
// keep failing.
type StuckError struct {
	RunID string
	// Attempt is the workflow task's attempt. If it is 1, no worker has taken the task.
	Attempt int
	// Paused reports whether Temporal has paused the workflow.
	Paused bool
}

func (e *StuckError) Error() string {
	if e.Paused {
		return fmt.Sprintf("run %s is paused in Temporal: nothing happens until it is unpaused there", e.RunID)
	}
	if e.Attempt > 1 {
		return fmt.Sprintf("run %s is stuck: its workflow failed %d times in a row; see the log of its host worker", e.RunID, e.Attempt-1)
	}
	return fmt.Sprintf("run %s is pending: no host worker executes it; start `clusterrun worker` or `clusterrun dev` for its queue", e.RunID)
}
