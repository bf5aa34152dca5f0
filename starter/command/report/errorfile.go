package report

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// copyErrorFile copies the root cause's error file to the path where the program that started us
// expects one. That program is a launcher of torch, or another run with this command as a task.
func copyErrorFile(a *cli.App, f *spec.Failure) {
	// A launcher within a run's task sets only the former. It is the inner one, so its variable
	// takes precedence.
	to := cmp.Or(os.Getenv("TORCHELASTIC_ERROR_FILE"), os.Getenv("CLUSTERRUN_ERROR_FILE"))
	if to == "" || f == nil || f.ErrorFile == "" {
		return
	}
	replaced, err := tasklog.HandOn(f.ErrorFile, to, f.ExitCode)
	if errors.Is(err, fs.ErrNotExist) && a.Elsewhere != nil {
		var b []byte
		if b, err = a.Elsewhere(f); err == nil {
			replaced, err = tasklog.HandOnContent(b, to, f.ExitCode)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !exists(f.ErrorFile):
		a.Say("the error file of %s is on %s and was not copied to %s", f.Task, cli.OrDash(f.Host), to)
	case err != nil:
		a.Say("could not copy the error file of %s: %s", f.Task, err)
	case replaced:
		a.Say("replaced %s with the error file of %s", to, f.Task)
	}
}

// errorFile reads a failure's error file from its host.
func errorFile(ctx context.Context, r *starter.Run, f *spec.Failure) ([]byte, error) {
	s, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	files := r.Files(s)
	defer files.Close()
	return files.Read(ctx, f.Host, f.ErrorFile)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
