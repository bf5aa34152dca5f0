package logs

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// Fold selects when identical lines from several tasks are shown as one: auto (on a terminal),
// always, or never. The zero value is never.
type Fold string

const (
	foldAuto   Fold = "auto"
	foldAlways Fold = "always"
	foldNever  Fold = "never"
)

// Register adds the flag.
func (f *Fold) Register(fs *pflag.FlagSet) {
	fs.StringVar((*string)(f), "fold", string(foldAuto), "show identical lines of several tasks as one `WHEN`: auto (on a terminal), always, never")
}

// Check checks the flag's value.
func (f *Fold) Check() error {
	if !slices.Contains([]Fold{"", foldAuto, foldAlways, foldNever}, *f) {
		return cli.Usagef("--fold %q: use auto, always or never", *f)
	}
	return nil
}

// on returns a folder for the output of the given number of tasks on a console, or nil if nothing
// is folded.
func (f Fold) on(console *tasklog.Console, tasks int, before func()) *tasklog.Folder {
	if f != foldAuto && f != foldAlways {
		return nil
	}
	return tasklog.NewFolder(console, tasks, f == foldAlways, before)
}
