package taskapi

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CO-01 to CO-18 and SEED-59 to SEED-70, for threads of Python: the tests are in
// python/test_coordinator.py, and run with each interpreter that is there.
func TestPythonCoordinator(t *testing.T) { withEachPython(t, "test_coordinator") }

// Errors of built-in kinds are what they were, also in another process, and long words
// leave the frames of a traceback: the tests are in python/test_errors.py.
func TestPythonErrorsOfFunctions(t *testing.T) { withEachPython(t, "test_errors") }

// What the processes of a pool can import of a main program that is no file: the tests are
// in python/test_pool.py.
func TestPythonMainProgramsOfPools(t *testing.T) { withEachPython(t, "test_pool") }

func withEachPython(t *testing.T, file string) {
	t.Helper()
	found := 0
	for _, name := range []string{"3", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"} {
		program := "python" + name
		if exec.Command(program, "--version").Run() != nil {
			continue
		}
		found++
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			runUnittest(t, program, file)
		})
	}
	if found == 0 {
		t.Skip("there is no python3")
	}
}

// runUnittest runs a file of tests in python/. One that hangs says where.
func runUnittest(t *testing.T, program, file string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-B", "-W", "error", "-X", "faulthandler", "-m", "unittest", "-v", file)
	cmd.Dir = "python"
	cmd.Env = append(os.Environ(), "CLUSTERRUN_STACK_SIGNAL=", "CLUSTERRUN_STACK_FILE=")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGABRT) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Regexp(t, `\nRan [1-9]\d* tests? in `, string(out))
}
