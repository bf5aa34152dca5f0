package look

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/logs"
)

// exportedLogs is all available output of a run.
type exportedLogs struct {
	// dirs lists the log directories on this machine, and one with copies from other hosts.
	dirs []string
	// missing reports whether some output is missing, which has been printed.
	missing bool
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
func allLogs(ctx context.Context, a *cli.App, r *starter.Run, of *starter.Status, dir string) (e exportedLogs, err error) {
	tmp, remove, err := filelock.TempDir(dir, ".clusterrun-export-")
	if err != nil {
		return e, err
	}
	e.remove = remove
	copies := filepath.Join(tmp, "run")
	defer func() {
		if err != nil {
			remove()
		}
	}()
	if err = os.Mkdir(copies, 0o700); err != nil {
		return e, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	status := *of
	s := &status
	l := logs.NewReader(a, r, logs.Selection{})
	defer l.CloseHosts()
	l.LearnServices(ctx, s)
	c := &logCopy{dir: copies, fail: stop}
	l.Deliver = c.deliver
	for _, h := range l.AddHosts(ctx, s) {
		l.Follows(h, l.Selected.Of(s, nil), false)
	}
	_ = l.FinishHosts(ctx) // fails only if ctx is done
	for _, h := range l.Hosts {
		if h.Reader != nil && h.Err == nil && ctx.Err() == nil {
			h.Err = c.finish(ctx, h)
		}
	}
	if ctx.Err() != nil {
		return e, context.Cause(ctx)
	}
	e.dirs = append(l.RunDirs(s), copies)
	for _, dir := range e.dirs {
		numbers, _ := tasklog.Attempts(dir) // packing them reports the error
		l.Found(numbers)
	}
	e.missing = l.Misses(s)
	return e, nil
}

// logCopy is a directory with copies of output on other hosts.
type logCopy struct {
	dir string
	// fail stops the copying.
	fail func(error)
}

// deliver writes a piece of a stream. Calls for different hosts may be concurrent, because their
// streams differ.
func (c *logCopy) deliver(chunk tasklog.Chunk) {
	name := tasklog.StdoutFile
	if chunk.Stderr {
		name = tasklog.StderrFile
	}
	if err := writeAt(c.fileOf(chunk.Rank, chunk.Attempt, name), chunk.Data, chunk.Offset); err != nil {
		c.fail(err)
	}
}

func (c *logCopy) fileOf(rank, attempt int, name string) string {
	return filepath.Join(tasklog.ProcessDir(c.dir, attempt, rank), name)
}

// finish adds a host's processes without output, and all processes' non-output files.
func (c *logCopy) finish(ctx context.Context, h *logs.Host) error {
	for rank, attempts := range h.Attempts {
		for _, n := range attempts {
			for _, output := range []string{tasklog.StdoutFile, tasklog.StderrFile} {
				if err := writeAt(c.fileOf(rank, n, output), nil, -1); err != nil {
					c.fail(err)
					return err
				}
			}
			for file, name := range map[string]string{"error": tasklog.ErrorFile, "result": tasklog.ResultFile, "start": tasklog.StartFile, "usage": tasklog.UsageFile} {
				if err := c.copy(ctx, h, rank, n, file, c.fileOf(rank, n, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// copy copies a process's file if it exists.
func (c *logCopy) copy(ctx context.Context, h *logs.Host, rank, attempt int, file, to string) error {
	write := func(piece []byte, offset int64) error {
		err := writeAt(to, piece, offset)
		if err != nil {
			c.fail(err)
		}
		return err
	}
	err := h.Client.EachPiece(ctx, rank, attempt, file, write)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		_ = os.Remove(to) // part of a value would be wrong
		return err
	}
	return write(nil, -1) // the file may be empty
}

// writeAt replaces the end of a file from offset on. If offset is -1, it only ensures that the
// file exists.
func writeAt(file string, b []byte, offset int64) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if offset >= 0 {
		// If the file on the host was truncated, so is the copy.
		if err = f.Truncate(offset); err == nil {
			_, err = f.WriteAt(b, offset)
		}
	}
	return errors.Join(err, f.Close())
}
