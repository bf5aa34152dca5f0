// Package output copies processes' output to files or to the launcher's output, within a quota.
package output

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// copier copies a run's output from pipes to files, and owns the pipes' read ends. A program that
// reopens /dev/stderr opens the pipe rather than the file, so it cannot truncate earlier output.
//
// One goroutine serves the pipes in the order in which they become readable. It uses a thread only
// while it copies, and exists only while there is a pipe.
type copier struct {
	of *Outputs
	// mu is held while output is copied. The lock of Outputs, and those that the stop function of
	// [Outputs.Begin] acquires, may be acquired while mu is held. A file may be on a server that is
	// gone, so every wait for mu must be bounded.
	mu sync.Mutex
	// ready is an epoll(7) instance for the pipes, or nil if there are no pipes.
	ready   *os.File
	streams map[int]*Stream // by the pipe's descriptor
	buf     *[readSize]byte
}

// buffers pools the buffers of copiers without streams, because a batch starts its tasks one by
// one.
var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

const (
	// pipeSize is a pipe's initial size, the kernel's default with 4 KiB pages. loudSize is the
	// size of a pipe that has once been nearly full. The kernel limits the total size of a user's
	// pipes, so not all of them start large.
	pipeSize = 64 << 10
	loudSize = 256 << 10
	// terminalSize exceeds a pseudoterminal's capacity.
	terminalSize = 128 << 10
	// readSize is the size of one read. It exceeds a pipe's size, so that only writes that are
	// larger than a pipe are split between reads.
	readSize = loudSize + 4<<10
	// shortest and longest limit the copier's pause between rounds, which combines many small
	// writes. The pause depends on how full the pipes are after a round, because programs must not
	// have to wait for full pipes. A pipe that was idle is read immediately.
	shortest = 50 * time.Microsecond
	longest  = time.Millisecond
)

// add starts copying streams, which it then owns.
func (c *copier) add(streams []*Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range streams {
		if err := c.addLocked(s); err != nil {
			for _, s := range streams {
				c.removeLocked(s)
			}
			return err
		}
	}
	return nil
}

func (c *copier) addLocked(s *Stream) error {
	if c.ready == nil {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return err
		}
		// This makes os use the runtime's poller instead of blocking a thread.
		_ = unix.SetNonblock(fd, true)
		c.ready = os.NewFile(uintptr(fd), "epoll") //nolint:gosec // a descriptor
		c.streams, c.buf = make(map[int]*Stream), buffers.Get().(*[readSize]byte)
		go c.run(c.ready)
	}
	err := c.control(unix.EPOLL_CTL_ADD, s.pipe)
	if err == nil {
		c.streams[s.pipe] = s
	} else if len(c.streams) == 0 {
		c.closeLocked()
	}
	return err
}

// control changes the set of pipes that the copier waits for. A pipe is reported once and must then
// be rearmed. Otherwise, each write to a pipe would wake the copier even if the pipe is already
// known to be readable.
func (c *copier) control(op, pipe int) error {
	conn, err := c.ready.SyscallConn()
	if err != nil {
		return err
	}
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(pipe)}             //nolint:gosec // a descriptor
	cerr := conn.Control(func(epoll uintptr) { err = unix.EpollCtl(int(epoll), op, pipe, &e) }) //nolint:gosec // a descriptor
	return errors.Join(cerr, err)
}

// armLocked rearms the pipes that were reported.
func (c *copier) armLocked(events []unix.EpollEvent) {
	for _, e := range events {
		if s := c.streams[int(e.Fd)]; s != nil && s.held == nil {
			_ = c.control(unix.EPOLL_CTL_MOD, s.pipe)
		}
	}
}

// retryEvery is the interval between attempts to write to a full disk.
const retryEvery = 50 * time.Millisecond

// retryLaterLocked repeatedly tries to write what a stream holds, until the stream's pipe can be
// rearmed.
func (c *copier) retryLaterLocked(s *Stream) {
	time.AfterFunc(retryEvery, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.streams[s.pipe] != s:
		case s.held != nil && !c.retryLocked(s):
			c.retryLaterLocked(s)
		default:
			_ = c.control(unix.EPOLL_CTL_MOD, s.pipe)
		}
	})
}

func (c *copier) retryLocked(s *Stream) (ok bool) {
	lost, ok := s.retry()
	c.of.miss(s.output, lost)
	return ok
}

// take takes the output that the streams hold.
func (c *copier) take() (all []Unkept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		if data := s.take(); len(data) > 0 {
			c.of.miss(s.output, int64(len(data)))
			all = append(all, Unkept{Path: s.file.Name(), Data: data})
		}
	}
	return all
}

func (c *copier) closeLocked() {
	_ = c.ready.Close()
	buffers.Put(c.buf)
	c.ready, c.buf, c.streams = nil, nil, nil
}

// removeLocked closes a stream, whether or not it was added.
func (c *copier) removeLocked(s *Stream) {
	if c.streams[s.pipe] == s {
		_ = c.control(unix.EPOLL_CTL_DEL, s.pipe)
		delete(c.streams, s.pipe)
		if len(c.streams) == 0 {
			c.closeLocked()
		}
	}
	c.of.miss(s.output, s.giveUp())
	s.end()
	s.close()
}

// run copies until ready contains no pipes.
func (c *copier) run(ready *os.File) {
	conn, err := ready.SyscallConn()
	if err != nil {
		return
	}
	events := make([]unix.EpollEvent, 128)
	gather, waited := longest, false
	for {
		n := 0
		err := conn.Read(func(epoll uintptr) bool {
			n = pollNow(int(epoll), events) //nolint:gosec // a descriptor
			return n != 0
		})
		if err != nil {
			return
		}
		c.mu.Lock()
		full := c.roundLocked(ready, events[:max(n, 0)])
		c.of.stopExcess()
		switch {
		case waited && full >= 0.5:
			gather = max(gather/2, shortest)
		case waited && full < 0.1:
			gather = min(gather*2, longest)
		}
		if waited = full < 0.5; waited {
			c.mu.Unlock()
			pause(gather)
			c.mu.Lock()
		}
		if c.ready == ready {
			c.armLocked(events[:max(n, 0)])
		}
		c.mu.Unlock()
	}
}

// pause is a more precise [time.Sleep]. The runtime's poller counts in milliseconds.
func pause(d time.Duration) {
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &unix.Timespec{Nsec: int64(d)}, nil)
}

// pollNow returns how many pipes are readable, at most len(events), or -1 after an error.
func pollNow(epoll int, events []unix.EpollEvent) int {
	for {
		n, err := unix.EpollWait(epoll, events, 0)
		if !errors.Is(err, unix.EINTR) {
			return n
		}
	}
}

// roundLocked reads once from each pipe that ready reported. It returns how full the fullest pipe
// was, from 0 to 1.
func (c *copier) roundLocked(ready *os.File, events []unix.EpollEvent) (full float64) {
	for _, e := range events {
		if s := c.streams[int(e.Fd)]; s != nil && c.ready == ready {
			full = max(full, float64(c.copyLocked(s))/float64(s.size()))
		}
	}
	return full
}

// copyLocked copies the result of one read from a pipe and returns its size. The size is 0 if the
// pipe is empty or was closed.
func (c *copier) copyLocked(s *Stream) int {
	n := c.copyOnce(s)
	if s.relay != nil && n > 0 {
		c.completeLine(s)
	}
	return n
}

func (c *copier) copyOnce(s *Stream) int {
	if s.held != nil && !c.retryLocked(s) {
		return 0
	}
	n, err := read(s.pipe, c.buf[:])
	switch {
	case errors.Is(err, unix.EAGAIN):
		return 0
	case err != nil || n == 0:
		c.removeLocked(s)
		return 0
	}
	// The pipe may be nearly full, because a page may hold a single write of only half its size.
	if n >= pipeSize/2 && !s.loud {
		s.loud = true
		setPipeSize(s.pipe, loudSize)
	}
	if s.relay != nil {
		s.followSize()
	}
	o := s.output
	room := c.of.admit(o, n)
	lost, err := s.write(c.buf[:room])
	if room < n {
		s.cutOff(int64(n-room), c.of.quota())
	}
	c.of.miss(o, lost)
	if s.held != nil {
		c.retryLaterLocked(s)
	}
	if errors.Is(err, errReaderGone) {
		c.removeLocked(s) // the program also gets SIGPIPE
	}
	return n
}

func read(fd int, buf []byte) (n int, err error) {
	for {
		n, err = unix.Read(fd, buf)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// drainLocked copies a pipe's present content. It ignores output that arrives during the copy.
func (c *copier) drainLocked(s *Stream) {
	left, err := unix.IoctlGetInt(s.pipe, unix.TIOCINQ)
	if s.relay != nil && s.relay.terminal {
		left = terminalSize // bytes in flight do not count
	} else if err != nil {
		return
	}
	for left >= 0 && c.streams[s.pipe] == s { // once more for a possible end of file
		n := c.copyLocked(s)
		if n == 0 {
			return
		}
		left -= n
	}
}

// awaitRoomLocked waits until the output that a stream holds is written or lost. It unlocks c.mu
// while it waits.
func (c *copier) awaitRoomLocked(s *Stream) {
	for c.streams[s.pipe] == s && s.held != nil {
		c.mu.Unlock()
		time.Sleep(retryEvery)
		c.mu.Lock()
		if c.streams[s.pipe] == s {
			c.drainLocked(s)
		}
	}
}

// end copies the rest of a process's output. If another process holds the pipes, copying continues
// until that process closes them.
func (c *copier) end(streams []*Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUpLocked()
	for _, s := range streams {
		c.drainLocked(s)
		c.awaitRoomLocked(s)
		s.end()
	}
}

// catchUpLocked copies the readable pipes, in the order they became readable.
func (c *copier) catchUpLocked() {
	if c.ready == nil || len(c.streams) == 0 {
		return
	}
	conn, err := c.ready.SyscallConn()
	if err != nil {
		return
	}
	events := make([]unix.EpollEvent, len(c.streams))
	n := 0
	_ = conn.Control(func(epoll uintptr) { n = pollNow(int(epoll), events) }) //nolint:gosec // a descriptor
	c.roundLocked(c.ready, events[:max(n, 0)])
	if c.ready != nil {
		c.armLocked(events[:max(n, 0)])
	}
}

// close copies what is left and stops.
func (c *copier) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUpLocked()
	for _, s := range c.streams {
		c.drainLocked(s)
		c.removeLocked(s)
	}
}
