package barriers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ErrClosed is returned if a round is closed or does not exist.
var ErrClosed = errors.New("the round is closed")

// ErrShutdown is returned when this host worker ends. The task keeps waiting: its next call,
// with the same key, finds the round again.
var ErrShutdown = errors.New("the host worker is shutting down; arrive again with the same key")

// RefusedError is a permanent error of the server.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return "the server refused the arrival: " + e.Err.Error() }

// Unwrap returns the server's error.
func (e *RefusedError) Unwrap() error { return e.Err }

// BrokenError reports that a barrier broke, and which tasks were missing.
type BrokenError struct {
	Name    string
	Round   int // from 0; people count from 1
	Why     spec.BarrierWhy
	Message string
	Missing []spec.BarrierMissing
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("barrier %s (round %d) is broken: %s", e.Name, e.Round+1, e.Message)
}

// TimeoutError is a [BrokenError] caused by a timeout, perhaps another task's.
type TimeoutError struct{ BrokenError }

// Unwrap lets errors.As find the [BrokenError].
func (e *TimeoutError) Unwrap() error { return &e.BrokenError }

// ParticipantsError reports that others wait at the barrier for other participants or,
// without Theirs, that the task is not among its own participants.
type ParticipantsError struct {
	Name, Task    string
	Yours, Theirs []string
}

func (e *ParticipantsError) Error() string {
	if e.Theirs == nil {
		return fmt.Sprintf("barrier %s: %s is not among its participants: %s", e.Name, e.Task, strings.Join(e.Yours, ", "))
	}
	return fmt.Sprintf("barrier %s: %s", e.Name, spec.OtherParticipantsText(e.Task, e.Yours, e.Theirs))
}

// TooManyError reports that a task has too many arrivals in one round.
type TooManyError struct{ Name, Task string }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("barrier %s: %s waits there too often at the same time; let only one thread wait", e.Name, e.Task)
}

// TooLargeError reports that the values of a round exceed the limit together.
type TooLargeError struct{ Name string }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("barrier %s: %s", e.Name, spec.TooLargeText())
}

// failure returns the error for a result that is not a release.
func failure(name string, round int, r spec.BarrierResult) error {
	e := BrokenError{Name: name, Round: round, Why: r.Why, Message: r.Message, Missing: r.Missing}
	if r.Why == spec.BarrierTimeout {
		return &TimeoutError{e}
	}
	return &e
}
