package proc

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Signal sends a signal to the process that started at ticks, but not to a later process with the
// same ID.
func Signal(pid int, ticks uint64, signal unix.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			_ = unix.Kill(pid, signal)
		}
		return
	}
	defer unix.Close(fd)
	if stat, err := ReadStat(pid); err == nil && stat.Ticks == ticks {
		_ = unix.PidfdSendSignal(fd, signal, nil, 0)
	}
}
