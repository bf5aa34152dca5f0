package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenPidfd opens a descriptor of a process that stays valid even if another process gets its ID.
func OpenPidfd(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(fd, true) // the flag of pidfd_open needs Linux 5.10
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// AwaitEnd returns when a pidfd's process has exited, or the pidfd is closed, and reports whether
// the process has exited.
func AwaitEnd(pidfd *os.File) (ended bool) {
	c, err := pidfd.SyscallConn()
	if err != nil {
		return false
	}
	_ = c.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ended = n > 0
		return ended
	})
	return ended
}
