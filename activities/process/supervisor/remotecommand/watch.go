package remotecommand

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// watched is a process of another parent.
type watched struct {
	ended chan struct{}
	stop  *os.File
}

// watch waits for the end of a process until the result is closed.
func watch(pid int) (*watched, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	r, stop, err := os.Pipe()
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	w := &watched{make(chan struct{}), stop}
	go func() {
		defer unix.Close(fd)
		defer r.Close()
		both := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(r.Fd())}} //nolint:gosec // descriptors
		for {
			_, err := unix.Poll(both, -1)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
			if err == nil {
				break
			}
		}
		if both[0].Revents != 0 {
			close(w.ended)
		}
	}()
	return w, nil
}

func (w *watched) close() { _ = w.stop.Close() }
