package supervisor

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/output"
	"github.com/clusterrun/clusterrun/activities/system/pty"
)

// Owner holds those of the owner's files that tasks can use. The supervisor does not read or close
// them, and writes only what tasks wrote.
type Owner struct {
	// Stdout and Stderr receive streams with [OwnersOutput]. nil means /dev/null.
	Stdout, Stderr *os.File
	// Stdin is used by a foreground command, together with Stdout and Stderr, and by commands with
	// [Command.Stdin]. If it is a terminal, it becomes the foreground process's controlling
	// terminal. If it is nil, nothing is started in the foreground.
	Stdin *os.File
}

// owner is a running supervisor's [Owner].
type owner struct {
	Owner
	// modes holds the initial modes of the terminal, or nil if Stdin is not a terminal.
	modes *unix.Termios
}

func newOwner(o Owner) owner {
	own := owner{Owner: o}
	if o.Stdin != nil {
		own.modes, _ = pty.Modes(o.Stdin)
	}
	return own
}

// foreground returns the owner's stdin, stdout and stderr for a foreground command, and the streams
// to copy.
func (o *owner) foreground(c Command) (fds []int, streams []*output.Stream, err error) {
	if o.Stdin == nil {
		return nil, nil, fault.NotStarted("it must run in the foreground, but there is no launcher to provide its stdin")
	}
	fd, err := lent(o.Stdin)
	for i, end := range []string{c.StdoutEnd, c.StderrEnd} {
		if err != nil {
			return fds, streams, err
		}
		fds = append(fds, fd)
		var copied *output.Stream
		if fd, copied, err = o.relayed(i, placeOf(c, end), true); copied != nil {
			streams = append(streams, copied)
		}
	}
	if err != nil {
		return fds, streams, err
	}
	return append(fds, fd), streams, nil
}

// lendTerminal makes the terminal, if any, a foreground process's controlling terminal, and resets
// the modes, which an earlier process may have changed.
func (o *owner) lendTerminal(attr *syscall.SysProcAttr) {
	if o.modes == nil {
		return
	}
	_ = pty.SetModes(o.Stdin, o.modes)
	attr.Setctty, attr.Ctty = true, 0
}

// duplicate returns a copy of f that the caller closes, or /dev/null if f is nil.
func duplicate(f *os.File) (int, error) {
	take := func() (int, error) { return unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0) }
	if f != nil {
		take = func() (int, error) { return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0) }
	}
	fd, err := take()
	if err != nil {
		return -1, fault.Failed("taking the owner's descriptors", err)
	}
	return fd, nil
}

// lent returns a copy of a file for a process, which expects the file to block. If f does not
// block, the copy is given a new file description if possible, since f's description may be shared.
func lent(f *os.File) (int, error) {
	if f == nil {
		return duplicate(f)
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK == 0 {
		return duplicate(f)
	}
	// Without the flag, opening a FIFO would wait for its other end.
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), flags&(unix.O_ACCMODE|unix.O_NONBLOCK)|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil { // a socket, or a pipe of another user
		fd, err = duplicate(f)
	}
	if err == nil {
		err = unix.SetNonblock(fd, false)
	}
	return fd, err
}
