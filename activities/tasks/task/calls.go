package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// ErrCallCancelled is the cause of a function's cancelled context if its value is no longer
// needed.
var ErrCallCancelled = errors.New("the call was cancelled")

// UnavailableError is returned by a function that cannot work because another task, such as a
// parameter server, does not answer. The function is retried, and the coordinator gets the error
// only if that happens too often.
type UnavailableError struct {
	// Task is the task that did not answer, such as "ps-0".
	Task string
	Err  error
}

func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return e.Task + " does not answer"
	}
	return fmt.Sprintf("%s does not answer: %v", e.Task, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// panicError is a panic of a function.
type panicError struct {
	message string
	stack   string
}

func (e *panicError) Error() string { return e.message }

// call is a closure in progress.
type call struct {
	closure.Closure
	ctx    context.Context
	cancel context.CancelCauseFunc
	told   bool // the host cancelled it
}

// run calls a closure and returns its outcome.
func (s *server) run(c *call) closure.Outcome {
	value, err := s.value(c.ctx, &c.Closure)
	return outcomeOf(value, err, context.Cause(c.ctx))
}

// value returns the return value of a closure's function, as JSON.
func (s *server) value(ctx context.Context, c *closure.Closure) (json.RawMessage, error) {
	f := s.functions.find(c.Function)
	if f == nil {
		return nil, s.unknown(c.Function)
	}
	if len(c.Resources) > 0 {
		return nil, &argumentError{f.name + " is written in Go and does not take resources of Python's ClusterCoordinator"}
	}
	args, err := f.arguments(c.Args, c.Kwargs)
	if err != nil {
		return nil, err
	}
	v, err := f.invoke(ctx, args)
	if err != nil || !f.returns {
		return nil, err
	}
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, &ownError{closure.ErrNotJSON, fmt.Sprintf("the value of %s is not JSON: %s", c.Function, strings.TrimPrefix(err.Error(), "json: "))}
	}
	if len(b) > closure.MaxBytes {
		return nil, &ownError{closure.ErrValueTooLarge, fmt.Sprintf(
			"the value of %s has %d bytes of JSON; the limit is %d: write it to a file and return the file's path", c.Function, len(b), closure.MaxBytes)}
	}
	return b, nil
}

// ownError is an error with one of our kinds.
type ownError struct{ kind, message string }

func (e *ownError) Error() string { return e.message }

func (s *server) unknown(name string) error {
	return &ownError{closure.ErrUnknownFunction, fmt.Sprintf("function %q is not registered here; registered are %s", name, strings.Join(s.functions.names(), ", "))}
}

// invoke calls the function. It returns a panic as an error.
func (f *function) invoke(ctx context.Context, args []reflect.Value) (value reflect.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{fmt.Sprint(p), string(debug.Stack())}
		}
	}()
	out := f.call.Call(append([]reflect.Value{reflect.ValueOf(ctx)}, args...))
	if e := out[len(out)-1]; !e.IsNil() {
		return value, e.Interface().(error)
	}
	return out[0], nil
}

// outcomeOf returns a call's outcome. cause is the cause of its cancelled context, if any.
func outcomeOf(value json.RawMessage, err, cause error) closure.Outcome {
	if err == nil {
		return closure.Outcome{Value: value}
	}
	out := closure.Outcome{Kind: closure.OutcomeError, Error: &closure.Error{
		Kind: kindOf(err), Message: shorten.Head(err.Error(), closure.MaxError),
	}}
	var panicked *panicError
	var own *ownError
	var argument *argumentError
	var unavailable *UnavailableError
	switch {
	case errors.As(err, &panicked):
		out.Error.Kind, out.Error.Traceback = "panic", panicked.stack
	case errors.As(err, &own):
		out.Error.Kind = own.kind
	case errors.As(err, &argument):
		out.Error.Kind = "ArgumentError"
	case errors.Is(cause, ErrCallCancelled):
		out.Kind = closure.OutcomeCancelled
	case errors.As(err, &unavailable):
		out.Kind, out.Error.Kind, out.Error.Task = closure.OutcomeUnavailable, closure.ErrUnavailable, shorten.Head(unavailable.Task, closure.MaxFunctionName)
	}
	return out
}
