package logs

import (
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// Screen shows tasks' output and this command's messages on stdout and stderr.
type Screen struct {
	Console *tasklog.Console
	app     *cli.App
	folder  *tasklog.Folder // nil if no lines are folded
}

// OpenScreen sends this command's messages through a new screen. If asResult is set, stdout only
// gets the result. tasks is the number of tasks.
func OpenScreen(a *cli.App, o tasklog.ConsoleOptions, fold Fold, tasks int, asResult bool) *Screen {
	out := a.Out
	if asResult && a.Global.JSON {
		out = a.Err
	}
	s := &Screen{app: a, Console: tasklog.NewConsole(out, a.Err, o)}
	a.Printer.Through(s.Console)
	s.folder = fold.on(s.Console, tasks, a.Printer.Flush)
	return s
}

// Deliver shows a chunk after all earlier messages.
func (s *Screen) Deliver(c tasklog.Chunk) {
	if s.folder != nil {
		s.folder.Deliver(c)
		return
	}
	s.app.Printer.Flush()
	s.Console.Deliver(c)
}

// Close shows the remaining output.
func (s *Screen) Close() error {
	s.folder.Rest()
	s.app.Printer.Flush()
	s.app.Printer.Through(nil)
	return s.Console.Close()
}
