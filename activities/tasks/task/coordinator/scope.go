package coordinator

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that was reported to a coordinator.
type PanicError struct {
	// Value is the argument of panic.
	Value any
	// Stack is the stack of the goroutine, from the place of the panic.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrGoexit is reported for a function that ended its goroutine with [runtime.Goexit], as the
// fatal methods of tests do.
var ErrGoexit = errors.New("the goroutine was ended with runtime.Goexit")

// Do runs f in this goroutine and turns everything but a normal return into a stop request:
// errors, panics, and the end of the goroutine. It returns nil for errors that the
// coordinator has taken. After Join the coordinator takes none; then Do returns them.
func (c *Coordinator) Do(f func() error) (err error) {
	guard(f, func(failure error) { err = c.RequestStop(failure) })
	return err
}

// guard calls f, and calls report if f fails in any way.
func guard(f func() error, report func(error)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if value := recover(); value != nil {
			report(&PanicError{Value: value, Stack: debug.Stack()})
			return
		}
		report(ErrGoexit)
	}()
	err := f()
	returned = true
	if err != nil {
		report(err)
	}
}
