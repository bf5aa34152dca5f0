package run

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const stdinFlag = "stdin"

// stdinNone is the value of --stdin that does not name a task.
const stdinNone = "none"

// setStdin chooses the task that reads our stdin. As with mpirun this is the first task, unless
// the flag names another, or stdin is a terminal or is already being read.
func setStdin(a *cli.App, cmd *cobra.Command, args []string, s *spec.RunSpec, f *specs.SpecFlags, o *runOptions) error {
	var src specs.Source
	if len(args) > 0 {
		var err error
		if src, err = specs.ParseSource(cmd, args); err != nil {
			return err
		}
	}
	reader := ""
	switch {
	case src.File == "-":
		reader = "the spec is read from stdin"
	case o.foreground != "":
		reader = o.foreground + " uses stdin because of --foreground"
	case o.remote:
		reader = "with --remote, tasks cannot read this command's stdin"
	}
	if !cmd.Flags().Changed(stdinFlag) {
		if o.remote && src.File != "-" && hasInput(tasklog.FileOf(a.In)) {
			return cli.Usagef("stdin has input, but %s; put it into a file that the hosts have, or discard it with --stdin none", reader)
		}
		if reader == "" && !cmd.Flags().Changed(coordinatorFlag) {
			o.stdin = readerOf(a, s)
		}
		return nil
	}
	_, isTask := s.Task(o.stdin)
	switch {
	case o.stdin == stdinNone:
		o.stdin = ""
	case !isTask && f.Others == nil: // otherwise the tasks may still be unknown
		return cli.Usagef("--stdin %s: use none or a task; the run has %s", o.stdin, specs.TaskNames(s))
	case reader != "":
		return cli.Usagef("--stdin %s: %s; omit --stdin", o.stdin, reader)
	case pty.Is(tasklog.FileOf(a.In)):
		return cli.Usagef("--stdin %s: stdin is a terminal; give it to a task with --foreground TASK", o.stdin)
	}
	return nil
}

// readerOf returns the default reader of our stdin: the first task if stdin is a pipe or a file,
// and "" otherwise.
func readerOf(a *cli.App, s *spec.RunSpec) string {
	in := tasklog.FileOf(a.In)
	if in == nil {
		return ""
	}
	info, err := in.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 && !info.Mode().IsRegular() {
		return ""
	}
	return s.TaskList()[0].Name()
}

// hasInput reports whether input can be read now from a file or a pipe.
func hasInput(in *os.File) bool {
	if in == nil || pty.Is(in) {
		return false
	}
	n, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
	return err == nil && n > 0
}

// sendStdin sends our stdin to the task that reads it, if that task is on another host.
func (l *localRun) sendStdin() {
	t, ok := l.spec.Task(l.stdin)
	if !ok || l.hosts == nil {
		return
	}
	host, _, err := spec.SplitAddress(t.Address)
	if err != nil || specs.IsThisMachine(host) {
		return
	}
	l.hosts.SendStdin(host, l.std.In, func(err error) {
		l.Say("%s receives no more of stdin: %s", l.stdin, err)
	})
}
