package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

func TestFunctionsAreCheckedWhenTheyAreRegistered(t *testing.T) {
	var none func(context.Context) error
	for _, c := range []struct {
		name string
		fn   any
		want string
	}{
		{"f", nil, `the function "f" cannot be registered: must be a func(ctx context.Context, ...) (T, error), not <nil>`},
		{"f", 7, `the function "f" cannot be registered: must be a func(ctx context.Context, ...) (T, error), not int`},
		{"f", none, `the function "f" cannot be registered: it is nil`},
		{"f", func() error { return nil }, `the function "f" cannot be registered: its first argument must be a context.Context, not a func() error`},
		{"f", func(int) error { return nil }, `the function "f" cannot be registered: its first argument must be a context.Context, not a func(int) error`},
		{"f", func(context.Context) {}, `the function "f" cannot be registered: it must return (T, error) or an error, but is a func(context.Context)`},
		{"f", func(context.Context) int { return 0 }, `the function "f" cannot be registered: it must return (T, error) or an error, but is a func(context.Context) int`},
		{"f", func(context.Context) (int, int, error) { return 0, 0, nil }, `the function "f" cannot be registered: it must return (T, error) or an error, but is a func(context.Context) (int, int, error)`},
		{"f", func(context.Context, int, chan int) error { return nil }, `the function "f" cannot be registered: argument 2 is of type chan int, which cannot be decoded from JSON`},
		{"", func(context.Context) error { return nil }, `"" is not a valid name for a function: it has 0 bytes; use 1 to 200`},
		{"a\nb", func(context.Context) error { return nil }, `"a\nb" is not a valid name for a function: contains control characters or is not UTF-8`},
		{"known", func(context.Context) error { return nil }, `function "known" is already registered`},
	} {
		f := NewFunctions()
		require.NoError(t, f.Register("known", func(context.Context, ...string) (map[string]any, error) { return nil, nil }))
		err := f.Register(c.name, c.fn)
		require.Error(t, err, c.want)
		assert.Equal(t, c.want, err.Error())
		assert.Equal(t, []string{"known"}, f.names())
	}
}

// callOf calls a function like a closure.
func callOf(t *testing.T, fn any, args, kwargs string) (string, error) {
	t.Helper()
	s := &server{functions: NewFunctions()}
	require.NoError(t, s.functions.Register("f", fn))
	c := &call{ctx: t.Context()}
	c.Function, c.Args, c.Kwargs = "f", json.RawMessage(args), json.RawMessage(kwargs)
	v, err := s.value(c.ctx, &c.Closure)
	return string(v), err
}

func TestArguments(t *testing.T) {
	type point struct{ X, Y int }
	add := func(_ context.Context, a int, b float64) (float64, error) { return float64(a) + b, nil }
	join := func(_ context.Context, sep string, parts ...string) (string, error) {
		return strings.Join(parts, sep), nil
	}
	for _, c := range []struct {
		fn           any
		args, kwargs string
		want         string
	}{
		{add, `[1, 2.5]`, ``, `3.5`},
		{add, `[1, 2.5]`, `{}`, `3.5`},
		{join, `["-"]`, ``, `""`},
		{join, `["-","a","b"]`, ``, `"a-b"`},
		{func(_ context.Context, p *point, m map[string][]point, x any) (any, error) {
			return []any{p.X, m["a"][1].Y, x}, nil
		},
			`[{"X":1},{"a":[{},{"Y":2}]},{"z":[null]}]`, ``, `[1,2,{"z":[null]}]`},
		{func(context.Context) error { return nil }, ``, ``, ``},
		{func(context.Context) (*int, error) { return nil, nil }, `[]`, ``, `null`},
	} {
		v := must.Get(callOf(t, c.fn, c.args, c.kwargs))(t)
		assert.Equal(t, c.want, v)
	}
	for _, c := range []struct {
		fn           any
		args, kwargs string
		want         string
	}{
		{add, `[1]`, ``, `f takes 2 arguments, but was given 1`},
		{add, `[1,2,3]`, ``, `f takes 2 arguments, but was given 3`},
		{add, ``, ``, `f takes 2 arguments, but was given 0`},
		{join, `[]`, ``, `f takes at least 1 argument, but was given 0`},
		{add, `["one",2]`, ``, `f: argument 1 is "one": json: cannot unmarshal string into Go value of type int`},
		{join, `["a","b",{"c":1}]`, ``, `f: argument 3 is {"c":1}: json: cannot unmarshal object into Go value of type string`},
		{add, `{"a":1}`, ``, `f: its arguments are not a JSON array: json: cannot unmarshal object into Go value of type []json.RawMessage`},
		{add, `[1,2]`, `{"b":1,"a":2}`, `f is written in Go and does not take arguments by name; it was given a, b`},
		{func(_ context.Context, p point) error { return nil }, `[{"X":"` + strings.Repeat("é", 100) + `"}]`, ``,
			`f: argument 1 is {"X":"` + strings.Repeat("é", 25) + `…: json: cannot unmarshal string into Go struct field point.X of type int`},
	} {
		_, err := callOf(t, c.fn, c.args, c.kwargs)
		require.Error(t, err, c.want)
		assert.Equal(t, c.want, err.Error())
		assert.Equal(t, "ArgumentError", outcomeOf(nil, err, nil).Error.Kind)
	}
}

type ownKind struct{}

func (ownKind) Error() string { return "of my own" }

func TestOutcomes(t *testing.T) {
	fail := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	for _, c := range []struct {
		fn                  any
		kind, errKind, text string
	}{
		{fail(errors.New("no")), "error", "", "no"},
		{fail(fmt.Errorf("no: %w", ownKind{})), "error", "", "no: of my own"},
		{fail(ownKind{}), "error", "task.ownKind", "of my own"},
		{fail(fmt.Errorf("step: %w", &UnavailableError{Task: "ps-0", Err: errors.New("refused")})), "unavailable", closure.ErrUnavailable, "step: ps-0 does not answer: refused"},
		{func(context.Context) error { panic("at the disco") }, "error", "panic", "at the disco"},
		{func(context.Context) (any, error) { return make(chan int), nil }, "error", closure.ErrNotJSON, "the value of f is not JSON: unsupported type: chan int"},
		{func(context.Context) (float64, error) { return math.NaN(), nil }, "error", closure.ErrNotJSON, "the value of f is not JSON: unsupported value: NaN"},
		{func(context.Context) (string, error) { return strings.Repeat("x", closure.MaxBytes-1), nil }, "error", closure.ErrValueTooLarge,
			"the value of f has 262145 bytes of JSON; the limit is 262144: write it to a file and return the file's path"},
	} {
		v, err := callOf(t, c.fn, ``, ``)
		o := outcomeOf(json.RawMessage(v), err, nil)
		require.NotNil(t, o.Error, c.text)
		assert.Equal(t, []string{c.kind, c.errKind, c.text}, []string{string(o.Kind), o.Error.Kind, o.Error.Message})
		if o.Error.Kind == "panic" {
			assert.Contains(t, o.Error.Traceback, "TestOutcomes.func")
		}
		if o.Kind == "unavailable" {
			assert.Equal(t, "ps-0", o.Error.Task)
		}
	}
	v := must.Get(callOf(t, func(context.Context) (string, error) { return strings.Repeat("x", closure.MaxBytes-2), nil }, ``, ``))(t)
	assert.Len(t, v, closure.MaxBytes)

	s := &server{functions: NewFunctions()}
	require.NoError(t, s.functions.Register("g", fail(nil)))
	require.NoError(t, s.functions.Register("f", fail(nil)))
	c := &call{ctx: t.Context()}
	c.Function = "h"
	_, err := s.value(c.ctx, &c.Closure)
	o := outcomeOf(nil, err, nil)
	assert.Equal(t, closure.ErrUnknownFunction, o.Error.Kind)
	assert.Equal(t, `function "h" is not registered here; registered are f, g`, o.Error.Message)
}
