package barriers

import (
	"errors"
	"fmt"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ErrClosed is returned if a round is closed or does not exist.
var ErrClosed = errors.New("the round is closed")

// ErrShutdown is returned when this host worker stops. The task keeps waiting: its next call, with
// the same key, finds the same round.
var ErrShutdown = errors.New("the host worker is shutting down; arrive again with the same key")

// RefusedError is a permanent server error.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return "the server refused the arrival: " + e.Err.Error() }

// Unwrap returns the server's error.
func (e *RefusedError) Unwrap() error { return e.Err }

// Error reports why a barrier did not release a task.
type Error struct {
	// Code is the problem code that the task receives.
	Code, Message string
	// Round is the broken round, from 0, and Missing lists the tasks that were missing, if known.
	Round   int
	Missing []spec.BarrierMissing
}

func (e *Error) Error() string { return e.Message }

func refusal(code, name, why string) *Error {
	return &Error{Code: code, Message: fmt.Sprintf("barrier %s: %s", name, why)}
}

// failure returns the error for a result other than a release.
func failure(name string, round int, r spec.BarrierResult) *Error {
	e := &Error{Code: wire.CodeBarrierBroken, Message: fmt.Sprintf("barrier %s (round %d) is broken: %s", name, round+1, r.Message), Round: round, Missing: r.Missing}
	if r.Why == spec.BarrierTimeout {
		e.Code = wire.CodeBarrierTimeout
	}
	return e
}
