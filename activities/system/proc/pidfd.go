package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenPidfd opens a descriptor for a process. It refers to this process even if another process
// later gets the same ID.
func OpenPidfd(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(fd, true) // pidfd_open has a flag for this, but only since Linux 5.10
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// AwaitEnd returns when a pidfd's process has exited or the pidfd is closed. It reports whether the
// process has exited.
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
