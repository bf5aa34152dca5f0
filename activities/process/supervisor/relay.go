package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// An output that goes to the owner is copied as well: its end is kept, to be shown in the report
// of a failure. What programs find with isatty(3) is the same as without us: in place of a terminal
// they get a pseudoterminal. A process in the foreground has the terminal itself.

// keptEnd is how much of an output that goes to the owner is kept.
const keptEnd = 64 << 10

// relayed returns what a process gets for the owner's stdout (0) or stderr (1), and the stream to
// be copied, if it is to be. end is where the end of that is kept. A process in the foreground
// gets a terminal itself.
func (o *owner) relayed(which int, end place, foreground bool) (int, *stream, error) {
	file := []*os.File{o.Stdout, o.Stderr}[which]
	fd, err := duplicate(file)
	if err != nil || file == nil {
		return fd, nil, err
	}
	var r, w int
	var st unix.Stat_t
	terminal := isTerminal(file)
	switch err := unix.Fstat(fd, &st); {
	case terminal && !foreground:
		if r, w, err = pseudoterminal(file); err != nil {
			return fd, nil, nil //nolint:nilerr // there are too many, or none in this container
		}
	case err != nil || st.Mode&unix.S_IFMT == unix.S_IFCHR:
		return fd, nil, nil // the terminal, or /dev/null
	default:
		if r, w, err = newPipe(); err != nil {
			_ = unix.Close(fd)
			return -1, nil, &startError{"making a pipe for its output: " + reasonOf(err), exitcode.NotExecutable}
		}
	}
	to := os.NewFile(uintptr(fd), "the output of the owner") //nolint:gosec // a descriptor
	return w, &stream{pipe: r, file: to, place: end, relay: &relay{which: which, terminal: terminal}}, nil
}

// pseudoterminal returns a pair of the size of a terminal. It changes nothing that is written,
// which the terminal itself does. Like a pipe it blocks only at the end of the process.
func pseudoterminal(like *os.File) (r, w int, err error) {
	master, slave, err := pty.Open()
	if err != nil {
		return -1, -1, err
	}
	defer master.Close()
	defer slave.Close()
	modes, err := pty.Modes(slave)
	if err != nil {
		return -1, -1, err
	}
	if err := pty.SetModes(slave, pty.Raw(modes)); err != nil {
		return -1, -1, err
	}
	if rows, columns, err := pty.Size(like); err == nil {
		_ = pty.SetSize(master, rows, columns)
	}
	if r, err = duplicate(master); err != nil {
		return -1, -1, err
	}
	// The master does not block; [os.File.Fd] in duplicate has changed that.
	if err := unix.SetNonblock(r, true); err != nil {
		_ = unix.Close(r)
		return -1, -1, err
	}
	if w, err = duplicate(slave); err != nil {
		_ = unix.Close(r)
	}
	return r, w, err
}

// followSize gives a pseudoterminal the size of the owner's terminal, now and then.
func (s *stream) followSize() {
	r := s.relay
	if !r.terminal || time.Since(r.sized) < time.Second {
		return
	}
	r.sized = time.Now()
	fd := int(s.file.Fd()) //nolint:gosec // a descriptor
	if now, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(s.pipe, unix.TIOCSWINSZ, now) // does nothing if it is the same
	}
}

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := pty.Modes(f)
	return err == nil
}

// unkept returns where the end of the outputs would be that go to a terminal directly.
func (o *owner) unkept(c Command, copied []*stream) (places []place) {
	for i, path := range []string{c.Stdout, c.Stderr} {
		if slices.ContainsFunc(copied, func(s *stream) bool { return s.relay != nil && (s.relay.which == i || o.oneOutput()) }) {
			continue
		}
		end := placeOf(c, []string{c.StdoutEnd, c.StderrEnd}[i])
		if (path == OwnersOutput || c.Foreground) && end.path != "" && isTerminal([]*os.File{o.Stdout, o.Stderr}[i]) {
			places = append(places, end)
		}
	}
	return places
}

// sayUnkept says why there is no output in a file.
func (p place) sayUnkept() {
	if f := p.create(); f != nil {
		_, _ = f.WriteString("clusterrun: this output went to the terminal only\n")
		_ = f.Close()
	}
}

// oneOutput reports whether the owner's stdout and stderr are the same.
func (o *owner) oneOutput() bool {
	if o.Stdout == nil || o.Stderr == nil {
		return false
	}
	a, err := o.Stdout.Stat()
	if err != nil {
		return false
	}
	b, err := o.Stderr.Stat()
	return err == nil && os.SameFile(a, b)
}

// relay is what a stream has that goes to the owner.
type relay struct {
	which int // 0: stdout, 1: stderr
	// terminal reports whether the stream is a pseudoterminal, sized when it was last given the
	// size of the owner's.
	terminal bool
	sized    time.Time
	end      []byte
	// more reports whether there was more than end.
	more bool
}

func (r *relay) keep(b []byte) {
	r.end = append(r.end, b...)
	if n := len(r.end); n > 2*keptEnd {
		r.end = append(r.end[:0], r.end[n-keptEnd:]...)
		r.more = true
	}
}

// last returns the last lines.
func (r *relay) last() []byte {
	end := r.end
	if n := len(end); n > keptEnd {
		end, r.more = end[n-keptEnd:], true
	}
	if !r.more {
		return end
	}
	if _, rest, found := bytes.Cut(end, []byte("\n")); found {
		end = rest
	}
	return append(fmt.Appendf(nil, "clusterrun: this output was not redirected to a file; its last %d KiB follow\n", keptEnd>>10), end...)
}

// keepEnd writes the last lines to their file.
func (s *stream) keepEnd() {
	if s.place.path == "" || len(s.relay.end) == 0 {
		return
	}
	f := s.place.create()
	if f == nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(s.relay.last())
	s.relay.end = nil
}

// completeLine copies on for a moment while a stream of the owner ends within a line, so that
// no other comes between two pieces of what was written at once.
func (c *copier) completeLine(s *stream) {
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

// copyOutput copies the streams of a process from now on, and owns them. It must be called
// before the process can write.
func (s *supervisor) copyOutput(p *process, c Command, streams []*stream) error {
	p.unkept = s.owner.unkept(c, streams)
	parts := map[*outputs][]*stream{}
	for _, stream := range streams {
		o := &p.task.run.output
		if stream.relay != nil {
			o = s.relayOf(stream.relay.which)
		}
		parts[o] = append(parts[o], stream)
	}
	for o, part := range parts {
		c := c
		if o != &p.task.run.output {
			c.LogQuota = 0
		}
		if err := o.begin(p, c, part, s.stopLoud); err != nil {
			closeStreams(streams)
			return err
		}
	}
	return nil
}

// relayOf returns what copies to the owner's stdout (0) or stderr (1): one copier for each file, so
// that lines are not mixed.
func (s *supervisor) relayOf(which int) *outputs {
	if s.owner.oneOutput() {
		which = 0
	}
	return &s.relays[which]
}

// closeRelays copies what is there. Its reader may pause for as long as it likes, unless the owner
// wants to end or is gone.
func (s *supervisor) closeRelays(ownerGone <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range s.relays {
			s.relays[i].close()
		}
	}()
	select {
	case <-done:
		return
	case <-s.cfg.killNow:
		return
	case <-ownerGone:
	}
	select {
	case <-done:
	case <-time.After(s.cfg.KillBound):
	}
}
