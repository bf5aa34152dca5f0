package run

import (
	"fmt"
	"io"
	"os"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// checkForeground refuses a task that the run does not have, and a run that is not
// where our terminal is.
func checkForeground(s *spec.RunSpec, o runOptions) error {
	switch {
	case o.foreground == "":
		return nil
	case o.remote:
		return cli.Usagef("--foreground %s: with --remote the task runs on another host, which has no terminal to give; leave one of the two out", o.foreground)
	}
	for _, t := range s.TaskList() {
		if t.Name() == o.foreground {
			return nil
		}
	}
	return cli.Usagef("--foreground %s: the run has no such task; it has %s", o.foreground, specs.TaskNames(s))
}

// openStandardFiles prepares them. signals gets what the keyboard of a terminal that is
// lent means to us.
func openStandardFiles(a *cli.App, o runOptions, signals chan os.Signal) (worker.StandardFiles, error) {
	var std worker.StandardFiles
	if a.Global.JSON {
		std.Out = tasklog.FileOf(a.Err) // stdout is for the result alone
	} else {
		std.Out = tasklog.FileOf(a.Out)
	}
	std.Err = tasklog.FileOf(a.Err)
	if o.foreground == "" {
		var err error
		std.In, err = stdinFor(a, o.stdin, signals)
		return std, err
	}
	if std.In = tasklog.FileOf(a.In); std.In == nil || !std.Given() {
		return std, fmt.Errorf("--foreground %s: stdin, stdout and stderr are no files", o.foreground)
	}
	if !pty.Is(std.In) {
		return std, nil
	}
	// Each that is a terminal becomes the pseudoterminal; it is shown on the first
	// of those.
	show := std.In
	for _, f := range []*os.File{std.Err, std.Out} {
		if pty.Is(f) {
			show = f
		}
	}
	t, err := worker.NewForegroundTTY(std.In, show, func(s os.Signal) {
		select {
		case signals <- s:
		default: // there are more already than anybody needs
		}
	})
	if err != nil {
		return std, fmt.Errorf("--foreground %s: %w", o.foreground, err)
	}
	for _, f := range []**os.File{&std.In, &std.Out, &std.Err} {
		if pty.Is(*f) {
			*f = t.Slave
		}
	}
	for _, w := range []*io.Writer{&a.Out, &a.Err} {
		if cli.IsTerminal(*w) {
			*w = t.Screen
		}
	}
	std.Terminal = t
	return std, nil
}

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
