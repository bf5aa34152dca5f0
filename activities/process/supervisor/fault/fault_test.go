package fault_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// A host limit does not yield a program's exit code.
func TestTheCodeOfAStartThatFailed(t *testing.T) {
	for errno, want := range map[error]int{
		unix.EMFILE: exitcode.Machinery, unix.ENOSPC: exitcode.Machinery, unix.EAGAIN: exitcode.Machinery,
		unix.EACCES: exitcode.NotExecutable, errors.New("its limits"): exitcode.NotExecutable,
	} {
		for _, err := range []error{
			fault.Failed("making a pipe", fmt.Errorf("pipe: %w", errno)),
			fault.Exec("/bin/true", nil, nil, os.NewSyscallError("clone", errno)),
		} {
			var start *fault.Start
			assert.ErrorAs(t, err, &start)
			assert.Equal(t, want, start.Code, err)
		}
	}
}
