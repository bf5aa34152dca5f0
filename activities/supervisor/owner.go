package supervisor

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Owner has what tasks can get of the supervisor's owner. The supervisor neither
// reads, writes nor closes the files, and passes them to nothing else.
type Owner struct {
	// Stdout and Stderr are where a stream with [OwnersOutput] goes. None: to
	// /dev/null.
	Stdout, Stderr *os.File
	// Stdin is for a command in the foreground, with Stdout and Stderr. Where it is
	// a terminal, that becomes the controlling terminal of the process. None:
	// nothing is started in the foreground.
	Stdin *os.File
}

// owner is the [Owner] of a supervisor at work.
type owner struct {
	Owner
	// modes are those of the terminal when it was inherited; nil where Stdin is none.
	modes *unix.Termios
}

func newOwner(o Owner) owner {
	own := owner{Owner: o}
	if o.Stdin != nil {
		if modes, err := unix.IoctlGetTermios(int(o.Stdin.Fd()), unix.TCGETS); err == nil {
			own.modes = modes
		}
	}
	return own
}

// standard are copies of the owner's stdin, stdout and stderr for a command in
// the foreground.
func (o *owner) standard() (fds []int, err error) {
	if o.Stdin == nil {
		return nil, &startError{"it is to be in the foreground, and there is no owner whose stdin it could have", exitNotExecutable}
	}
	for _, f := range []*os.File{o.Stdin, o.Stdout, o.Stderr} {
		fd, err := duplicate(f)
		if err != nil {
			closeAll(fds)
			return nil, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// lendTerminal makes the terminal, where there is one, the controlling terminal of
// a process in the foreground. The one before may have left it in any mode.
func (o *owner) lendTerminal(attr *syscall.SysProcAttr) {
	if o.modes == nil {
		return
	}
	_ = unix.IoctlSetTermios(int(o.Stdin.Fd()), unix.TCSETS, o.modes)
	attr.Setctty, attr.Ctty = true, 0
}

// duplicate is a copy that may be closed; of no file, it is /dev/null.
func duplicate(f *os.File) (int, error) {
	take := func() (int, error) { return unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0) }
	if f != nil {
		take = func() (int, error) { return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0) }
	}
	fd, err := take()
	if err != nil {
		return -1, &startError{fmt.Sprintf("taking the owner's descriptors: %s", reasonOf(err)), exitNotExecutable}
	}
	return fd, nil
}
