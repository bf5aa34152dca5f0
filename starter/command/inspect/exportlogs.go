package inspect

import (
	"context"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/files"
)

// exportedLogs is all available output of a run.
type exportedLogs struct {
	// dirs lists the log directories on this machine, and one with copies from other hosts.
	dirs []string
	// missing is what could not be read.
	missing []files.Missing
	// remove removes the copies.
	remove func()
}

// copiesDir returns the directory for copies of output during an export. It is next to the
// exported file, where enough space is required anyway. A temporary directory in memory may be
// too small.
func copiesDir(a *cli.App, file string) (string, error) {
	if file != "-" {
		return filepath.Dir(file), nil
	}
	return a.Global.StateDir, os.MkdirAll(a.Global.StateDir, 0o700)
}

// allLogs gathers a run's output, with copies in dir. The caller must call e.remove.
func allLogs(ctx context.Context, a *cli.App, of *files.Files, dir string) (e exportedLogs, err error) {
	tmp, remove, err := filelock.TempDir(dir, ".clusterrun-export-")
	if err != nil {
		return e, err
	}
	e.remove = remove
	e.dirs, e.missing, err = of.Copy(ctx, a.LogsDir(), filepath.Join(tmp, "run"))
	if err != nil {
		remove()
	}
	return e, err
}
