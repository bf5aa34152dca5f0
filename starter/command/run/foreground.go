package run

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// checkForeground returns an error if the run lacks the task o.foreground, or if its tasks run on
// other hosts, which lack a terminal.
func checkForeground(s *spec.RunSpec, o runOptions) error {
	switch {
	case o.foreground == "":
		return nil
	case o.remote:
		return cli.Usagef("--foreground %s: with --remote, the task runs on another host, without a terminal; omit one of them", o.foreground)
	}
	if _, ok := s.Task(o.foreground); ok {
		return nil
	}
	return cli.Usagef("--foreground %s: the run has no such task; it has %s", o.foreground, specs.TaskNames(s))
}

// openStandardFiles prepares the tasks' standard files. If a terminal is lent to a task, signals
// receives the signals that its keyboard sends to this command.
func openStandardFiles(a *cli.App, o runOptions, signals chan os.Signal) (worker.StandardFiles, error) {
	var std worker.StandardFiles
	if a.Global.JSON {
		std.Out = tasklog.FileOf(a.Err) // only the result is written to stdout
	} else {
		std.Out = tasklog.FileOf(a.Out)
	}
	std.Err = tasklog.FileOf(a.Err)
	if o.foreground == "" {
		if o.stdin == "" {
			return std, nil
		}
		if std.In = tasklog.FileOf(a.In); std.In == nil {
			return std, fmt.Errorf("--stdin %s: stdin is closed", o.stdin)
		}
		return std, nil
	}
	if std.In = tasklog.FileOf(a.In); std.In == nil || !std.Given() {
		return std, fmt.Errorf("--foreground %s: stdin, stdout and stderr are closed", o.foreground)
	}
	if !pty.Is(std.In) {
		return std, nil
	}
	// Each file that is a terminal is replaced by the pseudoterminal, which is shown on the first
	// of stdout, stderr and stdin that is a terminal.
	show := std.In
	for _, f := range []*os.File{std.Err, std.Out} {
		if pty.Is(f) {
			show = f
		}
	}
	t, err := worker.NewForegroundTTY(std.In, show, func(s os.Signal) {
		select {
		case signals <- s:
		default: // the channel holds more signals than are needed
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

// directOutput reports whether the run's programs write directly to our output.
func directOutput(s *spec.RunSpec) bool {
	s = s.WithDefaults()
	return slices.ContainsFunc(s.TaskList(), func(t spec.Task) bool { return s.StreamsOf(t, t.Rank).Console != spec.StdNone })
}
