package command

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/starter"
)

// exportedLogs is all output of a run that can be had.
type exportedLogs struct {
	// dirs are those that are here, and one with copies of what is on other hosts.
	dirs []string
	// missing reports whether there is more, which has been said.
	missing bool
	copies  string
}

// remove removes the copies.
func (e exportedLogs) remove() { _ = os.RemoveAll(e.copies) }

// allLogs gathers the output of a run. What it returns is to be removed.
func (a *app) allLogs(ctx context.Context, r *starter.Run, of *starter.Status) (e exportedLogs, err error) {
	if e.copies, err = os.MkdirTemp("", "clusterrun-export-*"); err != nil {
		return e, err
	}
	defer func() {
		if err != nil {
			e.remove()
		}
	}()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	status := *of
	s := &status
	l := newLogReader(a, r, logSelection{})
	defer l.closeHosts()
	l.learnServices(ctx, s)
	c := &logCopy{dir: e.copies, fail: stop}
	l.deliver = c.deliver
	for _, h := range l.addHosts(ctx, s) {
		l.follows(h, l.selected.of(s, nil), false)
	}
	_ = l.finishHosts(ctx) // fails only with ctx
	for _, h := range l.hosts {
		if h.reader != nil && h.err == nil && ctx.Err() == nil {
			h.err = c.finish(ctx, h)
		}
	}
	if ctx.Err() != nil {
		return e, context.Cause(ctx)
	}
	leftOut, incomplete := l.namesLeftOut(s), l.missesSome()
	e.missing = leftOut || incomplete || l.broken.Load()
	e.dirs = append(l.runDirs(s), e.copies)
	return e, nil
}

// logCopy is a directory in which output of other hosts is written as it is there.
type logCopy struct {
	dir string
	// fail ends the copying.
	fail func(error)
}

// deliver adds a piece of a stream. It may be called for several hosts at the same time, whose
// streams are different ones.
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

// finish adds the processes of a host that have written nothing, and what others have written
// beside their output.
func (c *logCopy) finish(ctx context.Context, h *logHost) error {
	for rank, attempts := range h.attempts {
		for _, n := range attempts {
			for _, output := range []string{tasklog.StdoutFile, tasklog.StderrFile} {
				if err := writeAt(c.fileOf(rank, n, output), nil, -1); err != nil {
					c.fail(err)
					return err
				}
			}
			for file, name := range map[string]string{"error": tasklog.ErrorFile, "result": tasklog.ResultFile} {
				b, err := h.client.ReadFile(ctx, rank, n, file)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					return err
				}
				if err := writeAt(c.fileOf(rank, n, name), b, 0); err != nil {
					c.fail(err)
					return err
				}
			}
		}
	}
	return nil
}

// writeAt writes the end of a file, from an offset on; -1: it only has to be there.
func writeAt(file string, b []byte, offset int64) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if offset >= 0 {
		// A file that was truncated there begins anew.
		if err = f.Truncate(offset); err == nil {
			_, err = f.WriteAt(b, offset)
		}
	}
	return errors.Join(err, f.Close())
}
