package remedy

import (
	"errors"
	"strings"
)

// Error is an error that the user can correct.
type Error struct {
	Err error
	// Remedy is what to do, as the end of a sentence.
	Remedy string
}

func (e *Error) Error() string { return e.Err.Error() + "; " + e.Remedy }
func (e *Error) Unwrap() error { return e.Err }

// With returns an error with a remedy.
func With(err error, remedy string) error { return &Error{err, remedy} }

// Split returns an error's text, and its remedy if it is the text's end.
func Split(err error) (text, remedy string) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err.Error(), ""
	}
	if text, ok = strings.CutSuffix(err.Error(), "; "+e.Remedy); !ok {
		return text, ""
	}
	return text, e.Remedy
}
