package command

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// handOn gives the root cause's own error to whoever started us and told us where
// it looks for one: a launcher of torch's, or another run that we are a task of.
func (a *app) handOn(f *spec.ProcessFailure) {
	// A launcher within a task of ours sets only the former.
	to := cmp.Or(os.Getenv("TORCHELASTIC_ERROR_FILE"), os.Getenv("CLUSTERRUN_ERROR_FILE"))
	if to == "" || f == nil || f.ErrorFile == "" {
		return
	}
	replaced, err := tasklog.HandOn(f.ErrorFile, to, f.ExitCode)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !exists(f.ErrorFile):
		a.say("the error file of %s is on %s and is not copied to %s", f.Task, dash(f.Host), to)
	case err != nil:
		a.say("the error file of %s is not copied: %s", f.Task, err)
	case replaced:
		a.say("replaced %s with the error file of %s", to, f.Task)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
