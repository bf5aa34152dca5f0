package supervisor

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/output"
	"github.com/clusterrun/clusterrun/activities/system/pty"
)

// Output for the owner is also copied, so that its end can be kept for failure reports. Instead of
// a terminal, programs get a pseudoterminal, so that isatty(3) returns the same result as without
// clusterrun. A foreground process gets the terminal itself.

// relayed returns a descriptor for the owner's stdout (0) or stderr (1), and the stream to copy, if
// there is one. end is where the stream's end is kept. If the output is a terminal, a foreground
// process gets it directly.
func (o *owner) relayed(which int, end output.Place, foreground bool) (int, *output.Stream, error) {
	file := []*os.File{o.Stdout, o.Stderr}[which]
	terminal := isTerminal(file)
	if terminal && foreground {
		fd, err := lent(file)
		return fd, nil, err
	}
	fd, err := duplicate(file)
	if err != nil || file == nil {
		return fd, nil, err
	}
	var r, w int
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case terminal:
		if r, w, err = pseudoterminal(file); err != nil {
			return fd, nil, nil //nolint:nilerr // there are too many, or none in this container
		}
	case err != nil || st.Mode&unix.S_IFMT == unix.S_IFCHR:
		return fd, nil, nil // such as /dev/null
	default:
		if r, w, err = output.NewPipe(); err != nil {
			_ = unix.Close(fd)
			return -1, nil, fault.Failed("making a pipe for its output", err)
		}
	}
	to := os.NewFile(uintptr(fd), "the output of the launcher") //nolint:gosec // a descriptor
	return w, output.Relayed(r, to, end, which, terminal), nil
}

// pseudoterminal returns a pair with like's size. It does not convert output, because the owner's
// terminal does so. Like a pipe, it blocks only at the process's end.
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
	// The master must not block; [os.File.Fd] in duplicate changed that.
	if err := unix.SetNonblock(r, true); err != nil {
		_ = unix.Close(r)
		return -1, -1, err
	}
	if w, err = duplicate(slave); err != nil {
		_ = unix.Close(r)
	}
	return r, w, err
}

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := pty.Modes(f)
	return err == nil
}

// unkept returns where the end of the output would be kept if it did not go directly to a terminal.
func (o *owner) unkept(c Command, copied []*output.Stream) (places []output.Place) {
	for i, path := range []string{c.Stdout, c.Stderr} {
		if slices.ContainsFunc(copied, func(s *output.Stream) bool {
			which, relayed := s.Which()
			return relayed && (which == i || o.oneOutput())
		}) {
			continue
		}
		end := placeOf(c, []string{c.StdoutEnd, c.StderrEnd}[i])
		if (path == OwnersOutput || c.Foreground) && end.Path != "" && isTerminal([]*os.File{o.Stdout, o.Stderr}[i]) {
			places = append(places, end)
		}
	}
	return places
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

// copyOutput starts copying a process's streams, which it then owns. It must be called before the
// process can write.
func (l *launcher) copyOutput(p *process, c Command, streams []*output.Stream) error {
	p.unkept = l.owner.unkept(c, streams)
	own := &p.task.run.outputs
	parts := map[*output.Outputs][]*output.Stream{}
	for _, s := range streams {
		o := own
		if which, relayed := s.Which(); relayed {
			o = l.relayOf(which)
		}
		parts[o] = append(parts[o], s)
	}
	for o, part := range parts {
		var quota output.Quota
		if o == own {
			quota = output.Quota{Bytes: c.LogQuota, Drop: c.LogDrop}
		}
		out, err := o.Begin(quota, part, func() { l.excess(p) })
		if err != nil {
			output.CloseStreams(streams)
			return err
		}
		p.outputs = append(p.outputs, out)
	}
	return nil
}

// relayOf returns the Outputs that copy to the owner's stdout (0) or stderr (1). There is one
// copier per file, so that lines are not mixed.
func (l *launcher) relayOf(which int) *output.Outputs {
	if l.owner.oneOutput() {
		which = 0
	}
	return &l.relays[which]
}

// closeRelays copies what is left. The reader may pause for as long as it wants, unless the owner
// is exiting or gone, or killNow is closed.
func (l *launcher) closeRelays(ownerGone, killNow <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range l.relays {
			l.relays[i].Close()
		}
	}()
	select {
	case <-done:
		return
	case <-killNow:
		return
	case <-ownerGone:
	}
	select {
	case <-done:
	case <-time.After(l.bound):
	}
}

// endOutput completes a process's exit when its output is complete. The wait is limited, because
// the disk may hang or the reader of the owner's output may pause.
func (l *launcher) endOutput(p *process, exit *Exit) {
	written := make(chan Exit, 1)
	e := *exit
	go func() {
		for _, out := range p.outputs {
			dropped, excess := out.End(e.Reason == ReasonLogQuota, e.Reason != ReasonNone)
			e.Dropped += dropped
			if excess != "" {
				e.Reason, e.Detail = ReasonLogQuota, excess
			}
		}
		for _, end := range p.unkept {
			end.SayUnkept()
		}
		written <- e
	}()
	late := time.NewTimer(l.bound)
	defer late.Stop()
	select {
	case *exit = <-written:
	case <-late.C:
		l.log.Error("A process has exited, but its last output cannot be written yet.", "task", p.Key)
	}
}
