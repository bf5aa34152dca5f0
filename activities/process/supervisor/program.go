package supervisor

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
)

// program is an open program file for the side, which does not change if the file is replaced. 0
// stands for this program.
type program int

// lowestFD is the lowest descriptor that new processes do not use.
const lowestFD = 10

// keepProgram returns the program in file, at a descriptor that new processes do not use. It closes
// file.
func keepProgram(file *os.File) (program, error) {
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, lowestFD)
	return program(max(fd, 0)), err
}

// openProgram opens a program's file.
func openProgram(path string) (program, error) {
	// Use O_PATH, because the program may be executable but not readable.
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		var p program
		if p, err = keepProgram(os.NewFile(uintptr(fd), path)); err == nil { //nolint:gosec // a descriptor
			return p, nil
		}
	}
	return 0, fmt.Errorf("%s: %s", path, fault.Reason(err))
}

// path returns a path to execute the program.
func (p program) path() string {
	if p == 0 {
		return "/proc/self/exe"
	}
	return fmt.Sprintf("/proc/self/fd/%d", p)
}

func (p program) close() {
	if p != 0 {
		_ = unix.Close(int(p))
	}
}
