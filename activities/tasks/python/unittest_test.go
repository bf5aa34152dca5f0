package python

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

// The tests in tests/ pass with each interpreter that is installed. Those of threads that
// stop together are CO-01 to CO-18 and SEED-59 to SEED-70.
func TestPythonUnittests(t *testing.T) {
	for version, program := range interpreters(t, "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14") {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			// A test that hangs prints its stacks.
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, "-B", "-W", "error", "-X", "faulthandler", "-m", "unittest", "discover", "-v", "tests")
			cmd.Env = append(os.Environ(), "CLUSTERRUN_STACK_SIGNAL=", "CLUSTERRUN_STACK_FILE=")
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGABRT) }
			cmd.WaitDelay = 10 * time.Second
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Regexp(t, `\nRan [1-9]\d* tests? in `, string(out))
		})
	}
}
