package command

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
		2:   {usagef("x"), &spec.InvalidSpecError{}, &starter.RunningError{ID: "x"}, &starter.RefusedError{Invalid: true}, fmt.Errorf("wrapped: %w", usagef("x"))},
		7:   {&exitError{code: 7}, &starter.Error{Result: &spec.RunResult{ExitCode: 7}}},
		125: {errors.New("x"), &starter.TerminatedError{}, &starter.NotFoundError{}, &starter.UnansweredError{}, &starter.RefusedError{}},
	} {
		for _, err := range errs {
			assert.Equal(t, want, codeOf(err), "%v", err)
		}
	}
}

func TestErrorsAreSaidInOneShape(t *testing.T) {
	for want, err := range map[string]error{
		"clusterrun: x\n":      errors.New("x"),
		"":                     &exitError{code: 3},
		"clusterrun: why\n":    &exitError{code: 3, cause: errors.New("why")},
		"clusterrun: a\n  b\n": errors.New("a\nb"),
		"clusterrun: the command line has 2 problems:\n  a\n  b\n": &usageError{problems: []string{"a", "b"}},
		"clusterrun: run.yaml: a\n":                                &usageError{about: "run.yaml", problems: []string{"a"}},
	} {
		var stderr bytes.Buffer
		a := &app{err: &stderr}
		a.exit(err)
		assert.Equal(t, want, stderr.String())
	}
}

func TestInterruption(t *testing.T) {
	var i interruption
	assert.Equal(t, 1, i.add(syscall.SIGTERM))
	assert.Equal(t, 0, i.add(syscall.SIGPIPE), "a broken pipe does not kill what is being stopped")
	assert.Equal(t, 2, i.add(syscall.SIGINT))
	assert.Equal(t, 143, codeOfSignal(i.first))

	var broken interruption
	assert.Equal(t, 1, broken.add(syscall.SIGPIPE))
	assert.Equal(t, 0, broken.add(syscall.SIGPIPE), "every write says it again")
	assert.Equal(t, 2, broken.add(syscall.SIGINT))
	assert.Equal(t, 141, codeOfSignal(broken.first))
}
