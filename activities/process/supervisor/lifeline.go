package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// lifeline is our end of a pipe to the owner. It is nil if there is no owner.
type lifeline struct {
	file *os.File
	conn syscall.RawConn
	gone chan struct{} // closed when the owner is gone
	told chan StopAll  // the owner's requests
	// later is called with a request for later stops.
	later func(StopAll)
	log   *slog.Logger
	ended chan struct{} // closed when reading stops

	mu   sync.Mutex
	rest []byte // a partial line
}

// watchLifeline watches the lifeline's other end. It returns nil if f is nil.
func watchLifeline(f *os.File, later func(StopAll), log *slog.Logger) (*lifeline, error) {
	if f == nil {
		return nil, nil //nolint:nilnil // there is nothing to watch
	}
	// Use a copy, which the runtime can poll without a thread and which can be closed while it is
	// being read.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, fmt.Errorf("watching the lifeline: %w", err)
	}
	l := &lifeline{
		file: os.NewFile(uintptr(fd), "lifeline"),
		gone: make(chan struct{}), told: make(chan StopAll, 1), later: later, log: log, ended: make(chan struct{}),
	}
	if l.conn, err = l.file.SyscallConn(); err != nil {
		_ = l.file.Close()
		return nil, fmt.Errorf("watching the lifeline: %w", err)
	}
	go func() {
		defer close(l.ended)
		// Read returns an error once the file is closed.
		if l.conn.Read(l.readAll) == nil {
			close(l.gone)
		}
	}()
	return l, nil
}

// news returns a channel that is closed when the owner is gone, and one with its requests to
// stop.
func (l *lifeline) news() (gone <-chan struct{}, told <-chan StopAll) {
	if l == nil {
		return nil, nil
	}
	return l.gone, l.told
}

// stop stops watching.
func (l *lifeline) stop() {
	if l != nil {
		_ = l.file.Close()
		<-l.ended
	}
}

// catchUp returns once everything that the owner wrote is handled, so that a request from elsewhere
// that the owner causes afterwards cannot overtake it.
func (l *lifeline) catchUp() {
	if l != nil {
		_ = l.conn.Control(func(fd uintptr) { l.readAll(fd) })
	}
}

// readAll reads what is available, and reports whether the other end is closed.
func (l *lifeline) readAll(fd uintptr) (end bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b [4096]byte
	for {
		n, err := unix.Read(int(fd), b[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return false
		case err != nil || n == 0:
			return true
		}
		l.rest = append(l.rest, b[:n]...)
		for {
			line, rest, whole := bytes.Cut(l.rest, []byte{'\n'})
			if !whole {
				break
			}
			l.do(line)
			l.rest = rest
		}
	}
}

// do handles a line. The first line that stops the supervisor counts.
func (l *lifeline) do(line []byte) {
	var all StopAll
	err := json.Unmarshal(line, &all)
	if err == nil {
		err = all.check()
	}
	switch {
	case err != nil:
		l.log.Error("Could not parse a request from the launcher.", "error", err)
	case all.Later:
		l.later(all)
	default:
		select {
		case l.told <- all:
		default:
		}
	}
}
