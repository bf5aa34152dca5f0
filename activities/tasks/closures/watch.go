package closures

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watch detects a process's exit by a pidfd. Hosts also report the exits of tasks' processes, but
// their forked children may exit unnoticed. Old kernels lack pidfds.
func (b *Broker) watch(p *process, pid int) {
	if pid <= 0 {
		return
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			go b.ProcessEnded(p.task, p.name)
		}
		return
	}
	p.watched = os.NewFile(uintptr(fd), "pidfd")
	go func(f *os.File, key processKey) {
		if awaitReadable(f) {
			b.ProcessEnded(key.task, key.name)
		}
	}(p.watched, p.processKey)
}

// awaitReadable waits until the pidfd's process has exited. It returns false if unwatch was called.
func awaitReadable(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	asked := false
	err = raw.Read(func(uintptr) bool {
		before := asked
		asked = true
		return before
	})
	return err == nil
}

// unwatch stops the watch.
func (p *process) unwatch() {
	if p.watched != nil {
		_ = p.watched.SetReadDeadline(time.Unix(1, 0))
		_ = p.watched.Close()
	}
}
