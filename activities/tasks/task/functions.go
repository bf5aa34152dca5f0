package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Functions holds the functions that a process offers; see [Task.Serve].
type Functions struct {
	mu     sync.RWMutex
	byName map[string]*function
}

// function is a registered function.
type function struct {
	name     string
	call     reflect.Value
	takes    []reflect.Type // after the context
	variadic bool           // the last of takes is repeated
	returns  bool           // a value and an error
}

// NewFunctions returns an empty set.
func NewFunctions() *Functions { return &Functions{byName: map[string]*function{}} }

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// Register registers a function under a name: any func(ctx, args...) (T, error), or one that
// returns only an error. Its arguments are decoded from JSON, one by one, and its value is encoded
// as JSON. Functions may be registered while serving.
func (f *Functions) Register(name string, fn any) error {
	if err := checkFunctionName(name); err != nil {
		return err
	}
	checked, err := check(name, fn)
	if err != nil {
		return fmt.Errorf("the function %q cannot be registered: %w", name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byName[name] != nil {
		return fmt.Errorf("function %q is already registered", name)
	}
	f.byName[name] = checked
	return nil
}

func checkFunctionName(name string) error {
	if problem := wire.CheckFunction(name); problem != "" {
		return fmt.Errorf("%.60q is not a valid name for a function: %s", name, problem)
	}
	return nil
}

func check(name string, fn any) (*function, error) {
	v := reflect.ValueOf(fn)
	if !v.IsValid() || v.Kind() != reflect.Func {
		return nil, fmt.Errorf("must be a func(ctx context.Context, ...) (T, error), not %T", fn)
	}
	if v.IsNil() {
		return nil, errors.New("it is nil")
	}
	t := v.Type()
	if t.NumIn() == 0 || t.In(0) != contextType {
		return nil, fmt.Errorf("its first argument must be a context.Context, not a %s", t)
	}
	n := t.NumOut()
	if n == 0 || n > 2 || t.Out(n-1) != errorType {
		return nil, fmt.Errorf("it must return (T, error) or an error, but is a %s", t)
	}
	out := &function{name: name, call: v, variadic: t.IsVariadic(), returns: n == 2}
	for i := 1; i < t.NumIn(); i++ {
		in := t.In(i)
		if out.variadic && i == t.NumIn()-1 {
			in = in.Elem()
		}
		if in.Kind() == reflect.Func || in.Kind() == reflect.Chan {
			return nil, fmt.Errorf("argument %d is of type %s, which cannot be decoded from JSON", i, in)
		}
		out.takes = append(out.takes, in)
	}
	return out, nil
}

// names returns all function names, sorted.
func (f *Functions) names() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Sorted(maps.Keys(f.byName))
}

func (f *Functions) find(name string) *function {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.byName[name]
}

// argumentError is a mistake in a closure's arguments.
type argumentError struct{ message string }

func (e *argumentError) Error() string { return e.message }

// arguments returns a call's arguments, after the context.
func (f *function) arguments(args, kwargs json.RawMessage) ([]reflect.Value, error) {
	if names, err := keysOf(kwargs); err != nil || len(names) > 0 {
		return nil, &argumentError{fmt.Sprintf("%s is written in Go and does not take arguments by name; it was given %s", f.name, strings.Join(names, ", "))}
	}
	var raw []json.RawMessage
	if len(args) > 0 {
		if err := json.Unmarshal(args, &raw); err != nil {
			return nil, &argumentError{fmt.Sprintf("%s: its arguments are not a JSON array: %v", f.name, err)}
		}
	}
	if len(raw) != len(f.takes) && !f.variadic || f.variadic && len(raw) < len(f.takes)-1 {
		return nil, &argumentError{fmt.Sprintf("%s takes %s, but was given %d", f.name, f.count(), len(raw))}
	}
	out := make([]reflect.Value, len(raw))
	for i, b := range raw {
		want := f.takes[min(i, len(f.takes)-1)]
		v := reflect.New(want)
		if err := json.Unmarshal(b, v.Interface()); err != nil {
			return nil, &argumentError{fmt.Sprintf("%s: argument %d is %s: %v", f.name, i+1, shorten.Text(string(b), maxQuoted), err)}
		}
		out[i] = v.Elem()
	}
	return out, nil
}

// count describes how many arguments a function takes.
func (f *function) count() string {
	n, least := len(f.takes), ""
	if f.variadic {
		n, least = n-1, "at least "
	}
	return least + units.Count(n, "argument", "arguments")
}

func keysOf(object json.RawMessage) ([]string, error) {
	if len(object) == 0 {
		return nil, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// maxQuoted limits the part of a JSON string that an error quotes, in bytes.
const maxQuoted = 60
