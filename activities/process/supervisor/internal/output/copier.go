// Package output copies what processes write to their files, or to the output of the launcher, within
// a quota.
package output

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// copier copies the output of the processes of a run from pipes, whose read ends it owns, to
// their files. A program that opens /dev/stderr again opens the pipe rather than the file, so
// it cannot truncate earlier output.
//
// It is one goroutine, which serves the pipes in the order in which they became readable. It
// needs a thread only while it copies, and it exists only while there is a pipe.
type copier struct {
	of *Outputs
	// mu is held while output is copied. Other locks may be acquired while it is held: the lock of
	// the outputs, and the locks that the stop of [Outputs.Begin] acquires. A file may be on a
	// server that is gone, so every wait for mu must be bounded.
	mu sync.Mutex
	// ready is an epoll(7) of the pipes, or nil if there are none.
	ready   *os.File
	streams map[int]*Stream // by the descriptor of the pipe
	buf     *[readSize]byte
}

// buffers has the buffers of copiers that have no streams at the moment: the tasks of a batch start
// one after the other.
var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

const (
	// pipeSize is the initial size of a pipe, the default of the kernel with pages of 4 KiB,
	// and loudSize the size of a pipe that was once nearly full. All pipes of a user together
	// have a limit, so not all of them are large from the beginning.
	pipeSize = 64 << 10
	loudSize = 256 << 10
	// terminalSize is more than a pseudoterminal has room for.
	terminalSize = 128 << 10
	// readSize is the size of one read. It is larger than a pipe, so that no read ends within
	// what a program wrote at once, unless that is larger than a pipe.
	readSize = loudSize + 4<<10
	// shortest and longest bound the pause of the copier between two rounds, which makes one
	// write of many small ones. The pause depends on how full the pipes are after a round: a
	// program must not have to wait because its pipe is full. A pipe that was idle is read at
	// once.
	shortest = 50 * time.Microsecond
	longest  = time.Millisecond
)

// add copies streams from now on, and owns them.
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
		// This makes os use the poller of the runtime, instead of a thread that blocks.
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

// control changes the set of pipes that the copier waits for. A pipe is reported once and must
// be armed again, because each write to an armed pipe wakes us, even while we know that it is
// readable.
func (c *copier) control(op, pipe int) error {
	conn, err := c.ready.SyscallConn()
	if err != nil {
		return err
	}
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(pipe)}             //nolint:gosec // a descriptor
	cerr := conn.Control(func(epoll uintptr) { err = unix.EpollCtl(int(epoll), op, pipe, &e) }) //nolint:gosec // a descriptor
	return errors.Join(cerr, err)
}

// armLocked waits for the pipes again that were reported.
func (c *copier) armLocked(events []unix.EpollEvent) {
	for _, e := range events {
		if s := c.streams[int(e.Fd)]; s != nil && s.held == nil {
			_ = c.control(unix.EPOLL_CTL_MOD, s.pipe)
		}
	}
}

// retryEvery is the interval between attempts to write to a full disk.
const retryEvery = 50 * time.Millisecond

// retryLaterLocked tries to write what a stream holds, until its pipe can be waited for again.
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

// take takes what its streams hold.
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

// removeLocked closes a stream, which may not have been added.
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

// run copies until there are no pipes in ready.
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

// pause is like [time.Sleep], which is not that precise: the poller of the runtime counts in
// milliseconds.
func pause(d time.Duration) {
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &unix.Timespec{Nsec: int64(d)}, nil)
}

// pollNow returns how many pipes are readable, at most as many as there is room for; -1 after an
// error.
func pollNow(epoll int, events []unix.EpollEvent) int {
	for {
		n, err := unix.EpollWait(epoll, events, 0)
		if !errors.Is(err, unix.EINTR) {
			return n
		}
	}
}

// roundLocked reads once from each of the pipes that ready has reported. It returns how full
// the fullest was, from 0 to 1.
func (c *copier) roundLocked(ready *os.File, events []unix.EpollEvent) (full float64) {
	for _, e := range events {
		if s := c.streams[int(e.Fd)]; s != nil && c.ready == ready {
			full = max(full, float64(c.copyLocked(s))/float64(s.size()))
		}
	}
	return full
}

// copyLocked reads once from a pipe, and writes what it has read. It returns how much that is;
// 0 if there is nothing now, or if there was an end.
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
	// A page may have room for only one write of half its size.
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
		c.removeLocked(s) // its program gets SIGPIPE, too
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

// drainLocked copies the present content of a pipe. It ignores output that arrives during the
// copy.
func (c *copier) drainLocked(s *Stream) {
	left, err := unix.IoctlGetInt(s.pipe, unix.TIOCINQ)
	if s.relay != nil && s.relay.terminal {
		left = terminalSize // bytes in flight do not count
	} else if err != nil {
		return
	}
	for left >= 0 && c.streams[s.pipe] == s { // once more at the end, which may be there
		n := c.copyLocked(s)
		if n == 0 {
			return
		}
		left -= n
	}
}

// awaitRoomLocked waits until the held output of a stream is written, or lost. It unlocks c.mu
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

// end copies the rest of what a process has written. Should anything else have its pipes, that
// is copied on until it closes them.
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

// catchUpLocked copies what is readable, in the order in which it became so.
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

// close copies what is there and ends.
func (c *copier) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUpLocked()
	for _, s := range c.streams {
		c.drainLocked(s)
		c.removeLocked(s)
	}
}
