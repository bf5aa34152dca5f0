package runs

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Error describes an unsuccessful run.
type Error struct {
	RunID string
	// Result is the run's result, with a cause for every task. It is never nil.
	Result *spec.RunResult
	// Cause is Temporal's error.
	Cause error
}

func (e *Error) Error() string {
	if e.Result.Message != "" {
		return e.Result.Message
	}
	return fmt.Sprintf("run %s: %s", e.RunID, e.Result.Verdict)
}

// Unwrap returns Temporal's error.
func (e *Error) Unwrap() error { return e.Cause }

// RunningError reports that a run ID is in use.
type RunningError struct{ ID string }

func (e *RunningError) Error() string {
	return fmt.Sprintf("run %s is already running; choose another ID, or stop that run first", e.ID)
}

// The error types of runs without a result, in addition to those in package spec.
const (
	// ErrTerminated means that the run was terminated by the server.
	ErrTerminated = "Terminated"
	// ErrPanic means that the workflow code failed.
	ErrPanic = "PanicError"
)

// ResultOf returns the result of an unsuccessful run from the error that its workflow returned to
// a client or a parent. If the workflow closed without a result, ResultOf derives one from the
// error. It returns nil if err does not come from a closed workflow.
func ResultOf(err error) *spec.RunResult {
	if r := resultIn(err); r != nil {
		return r
	}
	application := innermost(err)
	var (
		cancelled  *temporal.CanceledError
		terminated *temporal.TerminatedError
		timeout    *temporal.TimeoutError
		panicked   *temporal.PanicError
		closed     *temporal.WorkflowExecutionError
	)
	switch {
	case errors.As(err, &terminated):
		return &spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: ErrTerminated, Message: "the run was terminated and left no result", ExitCode: exitcode.Machinery}
	case application != nil:
		return failureWithoutResult(application)
	case errors.As(err, &cancelled):
		return &spec.RunResult{Verdict: spec.VerdictCancelled, Message: "the run was cancelled before it started", ExitCode: exitcode.Interrupted}
	case errors.As(err, &timeout):
		return &spec.RunResult{Verdict: spec.VerdictTimedOut, Message: "the run exceeded its workflow timeout", ExitCode: exitcode.Timeout}
	case errors.As(err, &panicked), errors.As(err, &closed):
		message := err.Error()
		if errors.As(err, &closed) && closed.Unwrap() != nil {
			message = closed.Unwrap().Error() // omits Temporal's names and IDs
		}
		return &spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: ErrPanic, Message: message, ExitCode: exitcode.Machinery}
	}
	return nil
}

// innermost returns the last application error in a chain, or nil. The SDK wraps a run's error into
// its parent's error.
func innermost(err error) (last *temporal.ApplicationError) {
	for ; err != nil; err = errors.Unwrap(err) {
		if application, ok := err.(*temporal.ApplicationError); ok {
			last = application
		}
	}
	return last
}

// resultIn returns the result in the details of err or its causes.
func resultIn(err error) *spec.RunResult {
	for ; err != nil; err = errors.Unwrap(err) {
		d, ok := err.(interface {
			HasDetails() bool
			Details(...any) error
		})
		if !ok || !d.HasDetails() {
			continue
		}
		var r spec.RunResult
		if d.Details(&r) == nil && r.Verdict != "" {
			return &r
		}
	}
	return nil
}

// failureWithoutResult derives a result from a run's error if the run failed before it had one, for
// example because its input is not a spec, or because its workflow code failed. If a host refused
// the spec, the details may contain the exit code.
func failureWithoutResult(err *temporal.ApplicationError) *spec.RunResult {
	code := exitcode.Machinery
	if err.Type() == spec.ErrInvalidRunSpec {
		var known spec.RunResult
		if err.HasDetails() {
			_ = err.Details(&known)
		}
		code = cmp.Or(known.ExitCode, exitcode.Usage)
	}
	return &spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: err.Type(), Message: err.Message(), ExitCode: code}
}

// ended returns a run's error for its caller.
func ended(id string, err error) (*spec.RunResult, error) {
	var (
		running *temporal.ChildWorkflowExecutionAlreadyStartedError
		tested  *serviceerror.WorkflowExecutionAlreadyStarted // returned by the SDK's test environment
	)
	if errors.As(err, &running) || errors.As(err, &tested) {
		return nil, &RunningError{ID: id}
	}
	if r := ResultOf(err); r != nil {
		return r, &Error{RunID: id, Result: r, Cause: err}
	}
	return nil, fmt.Errorf("run %s: %w", id, err)
}
