package closures

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watch watches for the end of a process by a pidfd. Hosts report the ends of the processes of
// tasks, too, but their forked children may end unnoticed. Old kernels have no pidfds.
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

// awaitReadable waits until the process of a pidfd has ended. It returns false if the wait was
// cancelled.
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

// unwatch ends the watch.
func (p *process) unwatch() {
	if p.watched != nil {
		_ = p.watched.SetReadDeadline(time.Unix(1, 0))
		_ = p.watched.Close()
	}
}
