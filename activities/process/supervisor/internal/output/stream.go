package output

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
)

// NewPipe returns a pipe that blocks only at the write end. It belongs to the user who creates it,
// so that this user's programs can reopen it as /dev/stdout.
func NewPipe() (r, w int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		_ = unix.Close(ends[0])
		_ = unix.Close(ends[1])
		return -1, -1, err
	}
	setPipeSize(ends[0], pipeSize)
	return ends[0], ends[1], nil
}

// setPipeSize resizes a pipe, unless the user's pipes already use too much memory.
func setPipeSize(fd, size int) {
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size) //nolint:gosec // a descriptor
}

// Place is the path of a file, or no file if Path is empty.
type Place struct {
	Path string
	Files
}

// Stream is one output of a process.
type Stream struct {
	output *Output
	pipe   int // the read end
	file   *os.File
	loud   bool // see loudSize
	// midline reports whether the file ends mid-line.
	midline bool
	// held is output that does not fit on the disk. Writing it is retried until holdFor has passed
	// since heldSince. Until then, the pipe is not read, so the program waits and nothing is lost.
	held      []byte
	heldSince time.Time
	// lost is the number of bytes that could not be written since the last successful write, and
	// why is the reason.
	lost int64
	why  string
	// cut counts the bytes over the quota.
	cut int64
	// ended reports whether the process has ended.
	ended bool
	relay *relay // for output to the owner, otherwise nil
}

// Through returns the write end of a pipe to a regular file, and the stream to copy. Anything else,
// such as /dev/null, it returns unchanged. It owns fd.
func Through(fd int, path string) (int, *Stream, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fd, nil, nil //nolint:nilerr // it can be written to all the same
	}
	r, w, err := NewPipe()
	if err != nil {
		_ = unix.Close(fd)
		return -1, nil, fault.Failed("making a pipe for its output", err)
	}
	return w, &Stream{pipe: r, file: os.NewFile(uintptr(fd), path)}, nil //nolint:gosec // a descriptor
}

// errReaderGone means that no process reads the output.
var errReaderGone = errors.New("its reader has exited")

// CloseStreams closes streams that [Outputs.Begin] did not take.
func CloseStreams(streams []*Stream) {
	for _, s := range streams {
		s.close()
	}
}

// size returns the pipe's size.
func (s *Stream) size() int {
	if s.loud {
		return loudSize
	}
	return pipeSize
}

func (s *Stream) close() {
	if s.pipe >= 0 {
		_ = unix.Close(s.pipe)
		s.pipe = -1
	}
	_ = s.file.Close()
}

// holdFor is how long a program waits for a full disk before its output is dropped.
const holdFor = 5 * time.Second

// isFull reports whether the write may succeed later.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// isTaken reports whether a side takes the output that does not fit on the disk; see
// [Outputs.Take].
func (s *Stream) isTaken() bool {
	taker := s.output.all.taker.Load()
	return taker != nil && (*taker).Err() == nil
}

// take returns the held output and counts it as lost, once a program has waited long enough.
func (s *Stream) take() []byte {
	if s.lost == 0 && time.Since(s.heldSince) < holdFor {
		return nil
	}
	data := s.held
	s.giveUp()
	return data
}

// retry writes the held bytes. It returns false while the disk is full, and the number of bytes
// lost because the disk was full for too long.
func (s *Stream) retry() (lost int64, ok bool) {
	n, err := s.file.Write(s.held)
	if n > 0 {
		s.midline, s.heldSince = s.held[n-1] != '\n', time.Now()
		s.held = s.held[n:]
	}
	if isFull(err) && (s.isTaken() || time.Since(s.heldSince) < holdFor) {
		return 0, false
	}
	if err != nil {
		s.why = fault.Reason(err)
	}
	return s.giveUp(), true
}

// giveUp counts the held bytes as lost, and returns their number.
func (s *Stream) giveUp() int64 {
	lost := int64(len(s.held))
	s.lost += lost
	s.held = nil
	return lost
}

// write appends to the file and holds what does not fit. It returns how many bytes could not be
// written, and writes a note about them to the file as soon as possible.
func (s *Stream) write(b []byte) (lost int64, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if s.relay != nil {
		s.relay.keep(b)
	}
	n := 0
	if err = s.tellLoss(); err == nil {
		if n, err = s.file.Write(b); n > 0 {
			s.midline = b[n-1] != '\n'
		}
	}
	if isFull(err) && (s.lost == 0 || s.isTaken()) && s.relay == nil && !s.ended {
		s.held, s.heldSince = slices.Clone(b[n:]), time.Now()
		return 0, nil
	}
	if err != nil {
		s.why = fault.Reason(err)
	}
	if errors.Is(err, unix.EPIPE) {
		err = errReaderGone
	}
	lost = int64(len(b) - n)
	s.lost += lost
	return lost, err
}

// tellLoss writes the number of lost bytes to the file. It returns an error if the disk is still
// full.
func (s *Stream) tellLoss() error {
	if s.lost > 0 {
		if err := s.note(fmt.Sprintf("clusterrun: %d bytes of this output are missing because they could not be written to this file: %s\n", s.lost, s.why)); err != nil {
			return err
		}
	}
	s.lost = 0
	return nil
}

// note writes our own line, or nothing.
func (s *Stream) note(line string) error {
	if s.midline {
		line = "\n" + line
	}
	n, err := s.file.WriteString(line)
	if err == nil {
		s.midline = false
		return nil
	}
	if info, serr := s.file.Stat(); n > 0 && serr == nil && s.relay == nil {
		_ = s.file.Truncate(info.Size() - int64(n))
	}
	return err
}

// cutOff counts bytes that exceed the quota. The first call writes a note about it to the file.
func (s *Stream) cutOff(bytes, quota int64) {
	if s.cut == 0 {
		_ = s.note(fmt.Sprintf("clusterrun: further output is discarded because logs.quota is %d bytes\n", quota))
	}
	s.cut += bytes
}

// end completes the file when the process has ended, with notes about missing output.
func (s *Stream) end() {
	if s.ended {
		return
	}
	s.ended = true
	if s.relay != nil {
		s.keepEnd()
	}
	if s.cut > 0 {
		_ = s.note(fmt.Sprintf("clusterrun: %d bytes of this output were discarded\n", s.cut))
	}
	_ = s.tellLoss()
}

// create creates the file and its directories, or returns nil.
func (p Place) create() (f *os.File) {
	_ = p.User.Do(func() error {
		logs, err := p.Make()
		if err != nil {
			return err
		}
		defer logs.Close()
		// The path may now be a FIFO or a link to another file.
		fd, err := logs.Open(p.Path, Appending|unix.O_NONBLOCK|unix.O_NOFOLLOW)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return unix.Close(fd)
		}
		f = os.NewFile(uintptr(fd), p.Path) //nolint:gosec // a descriptor
		return nil
	})
	return f
}

// Appending holds the flags for opening an output file.
const Appending = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT
