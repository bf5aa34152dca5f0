package cli

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestExitCodes(t *testing.T) {
	for want, errs := range map[int][]error{
		0:   {nil},
		2:   {Usagef("x"), &spec.InvalidSpecError{}, &starter.RunningError{ID: "x"}, &starter.RefusedError{Invalid: true}, fmt.Errorf("wrapped: %w", Usagef("x"))},
		7:   {&ExitError{Code: 7}, &starter.Error{Result: &spec.RunResult{ExitCode: 7}}},
		125: {errors.New("x"), &starter.TerminatedError{}, &starter.NotFoundError{}, &starter.UnansweredError{}, &starter.RefusedError{}},
	} {
		for _, err := range errs {
			assert.Equal(t, want, CodeOf(err), "%v", err)
		}
	}
}

func TestErrorsAreSaidInOneShape(t *testing.T) {
	for want, err := range map[string]error{
		"clusterrun: x\n":      errors.New("x"),
		"":                     &ExitError{Code: 3},
		"clusterrun: why\n":    &ExitError{Code: 3, Cause: errors.New("why")},
		"clusterrun: a\n  b\n": errors.New("a\nb"),
		"clusterrun: the command line has 2 problems:\n  a\n  b\n": &UsageError{Problems: []string{"a", "b"}},
		"clusterrun: run.yaml: a\n":                                &UsageError{About: "run.yaml", Problems: []string{"a"}},
	} {
		var stderr bytes.Buffer
		a := &App{Err: &stderr}
		a.Exit(err)
		assert.Equal(t, want, stderr.String())
	}
}

func TestInterruption(t *testing.T) {
	var i Interruption
	assert.Equal(t, 1, i.Add(syscall.SIGTERM))
	assert.Equal(t, 0, i.Add(syscall.SIGPIPE), "a broken pipe does not kill what is being stopped")
	assert.Equal(t, 2, i.Add(syscall.SIGINT))
	assert.Equal(t, 143, CodeOfSignal(i.First))

	var broken Interruption
	assert.Equal(t, 1, broken.Add(syscall.SIGPIPE))
	assert.Equal(t, 0, broken.Add(syscall.SIGPIPE), "every write says it again")
	assert.Equal(t, 2, broken.Add(syscall.SIGINT))
	assert.Equal(t, 141, CodeOfSignal(broken.First))
}
