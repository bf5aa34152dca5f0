package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// checkForeground refuses a task that the run does not have, and a run that is not
// where our terminal is.
func checkForeground(s *spec.RunSpec, o runOptions) error {
	switch {
	case o.foreground == "":
		return nil
	case o.remote:
		return usagef("--foreground %s: with --remote the task runs on another host, which has no terminal to give; leave one of the two out", o.foreground)
	}
	for _, t := range s.TaskList() {
		if t.Name() == o.foreground {
			return nil
		}
	}
	return usagef("--foreground %s: the run has no such task; it has %s", o.foreground, taskNames(s))
}

// taskNames says "chief-0, worker-0 to worker-2".
func taskNames(s *spec.RunSpec) string {
	var list []string
	for _, g := range s.Tasks {
		switch n := g.Size(); n {
		case 0:
		case 1:
			list = append(list, g.Type+"-0")
		default:
			list = append(list, fmt.Sprintf("%s-0 to %s-%d", g.Type, g.Type, n-1))
		}
	}
	return strings.Join(list, ", ")
}

// standardFiles are what tasks get of our stdin, stdout and stderr.
type standardFiles struct {
	in       *os.File // nil: no task gets it
	out, err *os.File
	terminal *lentTerminal // nil: the files are ours
}

// openStandardFiles prepares them. signals gets what the keyboard of a terminal that is
// lent means to us.
func openStandardFiles(a *app, o runOptions, signals chan os.Signal) (standardFiles, error) {
	var std standardFiles
	if a.global.json {
		std.out = tasklog.FileOf(a.err) // stdout is for the result alone
	} else {
		std.out = tasklog.FileOf(a.out)
	}
	std.err = tasklog.FileOf(a.err)
	if o.foreground == "" {
		var err error
		std.in, err = stdinFor(a, o.stdin, signals)
		return std, err
	}
	if std.in = tasklog.FileOf(a.in); std.in == nil || !std.given() {
		return std, fmt.Errorf("--foreground %s: stdin, stdout and stderr are no files", o.foreground)
	}
	if !pty.Is(std.in) {
		return std, nil
	}
	// Each that is a terminal becomes the pseudoterminal; it is shown on the first
	// of those.
	show := std.in
	for _, f := range []*os.File{std.err, std.out} {
		if pty.Is(f) {
			show = f
		}
	}
	t, err := newLentTerminal(std.in, show, func(s os.Signal) {
		select {
		case signals <- s:
		default: // there are more already than anybody needs
		}
	})
	if err != nil {
		return std, fmt.Errorf("--foreground %s: %w", o.foreground, err)
	}
	for _, f := range []**os.File{&std.in, &std.out, &std.err} {
		if pty.Is(*f) {
			*f = t.slave
		}
	}
	for _, w := range []*io.Writer{&a.out, &a.err} {
		if isTerminal(*w) {
			*w = t.screen
		}
	}
	std.terminal = t
	return std, nil
}

// given reports whether there is an output that programs can have.
func (std standardFiles) given() bool { return std.out != nil && std.err != nil }

// directOutput reports whether programs of the run write to our output themselves.
func directOutput(s *spec.RunSpec) bool {
	s = s.WithDefaults()
	for _, t := range s.TaskList() {
		if s.StreamsOf(t, t.Rank).Console != spec.StdNone {
			return true
		}
	}
	return false
}

// watchReaders tells of a SIGPIPE when nobody reads a pipe any more that only
// programs write to: we would not get one ourselves.
func (std standardFiles) watchReaders(signals chan<- os.Signal) {
	for _, f := range []*os.File{std.out, std.err} {
		if info, err := f.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
			continue
		}
		// A copy, which nobody closes under poll; it is never closed because the
		// watch lasts as long as we do.
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			continue
		}
		go func() {
			for {
				fds := []unix.PollFd{{Fd: int32(fd)}}
				switch _, err := unix.Poll(fds, -1); {
				case err == unix.EINTR:
				case err == nil && fds[0].Revents&unix.POLLERR != 0:
					signals <- syscall.SIGPIPE
					return
				default:
					return
				}
			}
		}()
	}
}
