package output

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// KeptEnd is how many bytes are kept of output for the owner.
const KeptEnd = 64 << 10

// followSize resizes a pseudoterminal to match the owner's terminal, at intervals.
func (s *Stream) followSize() {
	r := s.relay
	if !r.terminal || time.Since(r.sized) < time.Second {
		return
	}
	r.sized = time.Now()
	fd := int(s.file.Fd()) //nolint:gosec // a descriptor
	if now, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(s.pipe, unix.TIOCSWINSZ, now) // no effect if unchanged
	}
}

// SayUnkept writes to the file why it contains no output.
func (p Place) SayUnkept() {
	if f := p.create(); f != nil {
		_, _ = f.WriteString("clusterrun: this output only went to the terminal\n")
		_ = f.Close()
	}
}

// relay is the state of a stream that goes to the owner.
type relay struct {
	which int // stdout is 0, stderr is 1
	// terminal reports whether the stream is a pseudoterminal. sized is when it was last resized to
	// match the owner's terminal.
	terminal bool
	sized    time.Time
	// end is the latest output, which is written to place when the process ends. more reports
	// whether there was earlier output.
	end   []byte
	more  bool
	place Place
}

func (r *relay) keep(b []byte) {
	r.end = append(r.end, b...)
	if n := len(r.end); n > 2*KeptEnd {
		r.end = append(r.end[:0], r.end[n-KeptEnd:]...)
		r.more = true
	}
}

// last returns the last lines.
func (r *relay) last() []byte {
	end := r.end
	if n := len(end); n > KeptEnd {
		end, r.more = end[n-KeptEnd:], true
	}
	if !r.more {
		return end
	}
	if _, rest, found := bytes.Cut(end, []byte("\n")); found {
		end = rest
	}
	return append(fmt.Appendf(nil, "clusterrun: this output was not redirected to a file; its last %d KiB follow\n", KeptEnd>>10), end...)
}

// keepEnd writes the last lines to their file.
func (s *Stream) keepEnd() {
	if s.relay.place.Path == "" || len(s.relay.end) == 0 {
		return
	}
	f := s.relay.place.create()
	if f == nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(s.relay.last())
	s.relay.end = nil
}

// completeLine briefly continues copying if a stream for the owner ends mid-line, so that other
// output does not split a write.
func (c *copier) completeLine(s *Stream) {
	for range 16 {
		if c.streams[s.pipe] != s || !s.midline {
			return
		}
		ready := []unix.PollFd{{Fd: int32(s.pipe), Events: unix.POLLIN}} //nolint:gosec // a descriptor
		if n, err := unix.Poll(ready, 1); n == 0 || err != nil {
			return
		}
		if c.copyOnce(s) == 0 {
			return
		}
	}
}

// Relayed returns the stream that copies pipe to the owner's stdout (0) or stderr (1), and keeps
// the end of the output. terminal reports whether the pipe is a pseudoterminal.
func Relayed(pipe int, to *os.File, end Place, which int, terminal bool) *Stream {
	return &Stream{pipe: pipe, file: to, relay: &relay{which: which, terminal: terminal, place: end}}
}

// Which returns the owner's output to which a stream is copied, if any.
func (s *Stream) Which() (which int, relayed bool) {
	if s.relay == nil {
		return 0, false
	}
	return s.relay.which, true
}

// KeepEnd changes where the end of a stream for the owner is kept.
func (s *Stream) KeepEnd(end Place) { s.relay.place = end }
