package supervisor

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
)

// program is an open program for the side. It stays the same if its file is replaced. 0 is this
// program.
type program int

// lowestFD keeps a descriptor away from those of new processes.
const lowestFD = 10

// keepProgram returns the program open as fd, at a number that new processes do not use. It closes
// the file.
func keepProgram(file *os.File) (program, error) {
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, lowestFD)
	return program(max(fd, 0)), err
}

// openProgram opens a program's file.
func openProgram(path string) (program, error) {
	// O_PATH, because the program may be executable but not readable.
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
