package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// newPipe returns a pipe of which only the write end blocks. It belongs to the user who
// creates it, who can open it again as /dev/stdout.
func newPipe() (r, w int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		closeAll(ends[:])
		return -1, -1, err
	}
	setPipeSize(ends[0], pipeSize)
	return ends[0], ends[1], nil
}

// setPipeSize changes the size of a pipe, unless the user has too much memory in pipes.
func setPipeSize(fd, size int) {
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size) //nolint:gosec // a descriptor
}

// place is where the file of a stream is.
type place struct {
	path string
	c    Command // the user and the directories, and nothing else
}

func placeOf(c Command, path string) place {
	return place{path, Command{User: c.User, LogDir: c.LogDir, LogRoot: c.LogRoot, LogMode: c.LogMode}}
}

// stream is one output of a process.
type stream struct {
	output   *output
	pipe     int // the read end
	file     *os.File
	place    place
	loud     bool   // see loudSize
	dev, ino uint64 // of the file
	// midline reports whether the file ends within a line.
	midline bool
	// held is what does not fit on the disk. It is tried again until holdFor after heldSince;
	// meanwhile the pipe is not read, so that its program waits and nothing is lost.
	held      []byte
	heldSince time.Time
	// lost is how many bytes could not be written since the last that could, and why.
	lost int64
	why  string
	// cut is how many bytes exceeded the quota.
	cut int64
	// ended reports whether the process has ended.
	ended bool
	relay *relay // of an output that goes to the owner; nil for others
}

// errReaderGone is returned if nobody reads what is written.
var errReaderGone = errors.New("its reader is gone")

func closeStreams(streams []*stream) {
	for _, s := range streams {
		s.close()
	}
}

// size returns the size of the pipe.
func (s *stream) size() int {
	if s.loud {
		return loudSize
	}
	return pipeSize
}

func (s *stream) close() {
	if s.pipe >= 0 {
		_ = unix.Close(s.pipe)
		s.pipe = -1
	}
	_ = s.file.Close()
}

// holdFor is how long a program waits for room on a full disk before its output is dropped.
const holdFor = 5 * time.Second

// isFull reports whether there may be room later.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// retry writes what is held. It returns false while there is no room, and how many bytes are
// lost because there was none for too long.
func (s *stream) retry() (lost int64, ok bool) {
	n, err := s.file.Write(s.held)
	if n > 0 {
		s.midline, s.heldSince = s.held[n-1] != '\n', time.Now()
		s.held = s.held[n:]
	}
	if isFull(err) && time.Since(s.heldSince) < holdFor {
		return 0, false
	}
	if err != nil {
		s.why = reasonOf(err)
	}
	return s.giveUp(), true
}

// giveUp counts what is held as lost, and returns how much that is.
func (s *stream) giveUp() int64 {
	lost := int64(len(s.held))
	s.lost += lost
	s.held = nil
	return lost
}

// write appends to the file, and holds what does not fit. It returns how many bytes could not
// be written, which it says in the file once that is possible.
func (s *stream) write(b []byte) (lost int64, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if s.relay != nil {
		s.relay.keep(b)
	} else {
		s.keepPlace()
	}
	n := 0
	if s.tellLoss() {
		if n, err = s.file.Write(b); n > 0 {
			s.midline = b[n-1] != '\n'
		}
	}
	if isFull(err) && s.lost == 0 && s.relay == nil && !s.ended {
		s.held, s.heldSince = slices.Clone(b[n:]), time.Now()
		return 0, nil
	}
	if err != nil {
		s.why = reasonOf(err)
	}
	if errors.Is(err, unix.EPIPE) {
		err = errReaderGone
	}
	lost = int64(len(b) - n)
	s.lost += lost
	return lost, err
}

// tellLoss writes how much could not be written. It returns false if there still is no room.
func (s *stream) tellLoss() bool {
	if s.lost > 0 && !s.note(fmt.Sprintf("clusterrun: %d bytes of this output are missing here, because they could not be written: %s\n", s.lost, s.why)) {
		return false
	}
	s.lost = 0
	return true
}

// note writes a line of our own, or nothing.
func (s *stream) note(line string) bool {
	if s.midline {
		line = "\n" + line
	}
	n, err := s.file.WriteString(line)
	if err == nil {
		s.midline = false
		return true
	}
	if info, serr := s.file.Stat(); n > 0 && serr == nil && s.relay == nil {
		_ = s.file.Truncate(info.Size() - int64(n))
	}
	return false
}

// cutOff counts bytes that exceed the quota. The first time it says so in the file.
func (s *stream) cutOff(bytes, quota int64) {
	if s.cut == 0 {
		s.note(fmt.Sprintf("clusterrun: further output is dropped: logs.quota is %d bytes\n", quota))
	}
	s.cut += bytes
}

// end writes what is to be known of the whole output of the process.
func (s *stream) end() {
	if s.ended {
		return
	}
	s.ended = true
	if s.relay != nil {
		s.keepEnd()
	}
	if s.cut > 0 {
		s.note(fmt.Sprintf("clusterrun: %d bytes of this output were dropped\n", s.cut))
	}
	s.tellLoss()
}

// keepPlace creates a new file if ours was renamed or removed.
func (s *stream) keepPlace() {
	if s.place.path == "" || s.ended {
		return
	}
	var at unix.Stat_t
	err := unix.Lstat(s.place.path, &at)
	if err == nil && at.Dev == s.dev && at.Ino == s.ino || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if f := s.place.create(); f != nil {
		_ = s.file.Close()
		s.file, s.midline = f, false
		s.identify()
		s.note("clusterrun: this file was renamed or removed while it was written; what came before is not here\n")
	}
}

// identify remembers which file it is.
func (s *stream) identify() {
	var st unix.Stat_t
	if unix.Fstat(int(s.file.Fd()), &st) == nil {
		s.dev, s.ino = st.Dev, st.Ino
	}
}

// create creates the file again, with its directories; nil if that is not possible.
func (p place) create() (f *os.File) {
	_ = p.c.User.Do(func() error {
		logs, err := makeLogDir(p.c)
		if err != nil {
			return err
		}
		defer logs.close()
		// What is there now may be a FIFO, or a link to another file.
		fd, err := logs.open(p.path, appending|unix.O_NONBLOCK|unix.O_NOFOLLOW)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return unix.Close(fd)
		}
		f = os.NewFile(uintptr(fd), p.path) //nolint:gosec // a descriptor
		return nil
	})
	return f
}

const appending = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT
