package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/background"
)

// Copy copies the run's files from other hosts into directory to, which becomes a run's directory.
// It returns the directories on this machine that contain the run's files, including those of
// logDir, and lists what is missing.
func (f *Files) Copy(ctx context.Context, logDir, to string) (dirs []string, missing []Missing, err error) {
	w := f.Follow(Options{LogDir: logDir}, nil)
	if w.someUnread() {
		f.learn(ctx)
	}
	hosts := f.elsewhere(ctx, tasklog.Selection{})
	failed := make([]error, len(hosts))
	background.Each(8, hosts, func(i int, h *host) {
		failed[i] = h.copy(ctx, to)
		h.reading, h.read = true, true
	})
	if err := errors.Join(append(failed, ctx.Err())...); err != nil {
		return nil, nil, err
	}
	for _, dir := range append(w.runDirs(), to) {
		attempts, err := tasklog.Attempts(dir)
		if w.found(attempts); err != nil || len(attempts) > 0 { // packing the files reports the error
			dirs = append(dirs, dir)
		}
	}
	return dirs, w.Missing(), nil
}

// copy copies a host's files. It sets the host's error, and returns those of this machine.
func (h *host) copy(ctx context.Context, to string) error {
	for rank, attempts := range h.attempts {
		for _, n := range attempts {
			dir := tasklog.ProcessDir(to, n, rank)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			for _, name := range hostservice.Files() {
				if err := h.copyFile(ctx, rank, n, name, filepath.Join(dir, name)); err != nil || h.err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// copyFile copies a process's file if it exists.
func (h *host) copyFile(ctx context.Context, rank, attempt int, name, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	var unwritten error
	err = h.client.EachPiece(ctx, rank, attempt, hostservice.FileName(name), func(piece []byte, _ int64) error {
		_, unwritten = out.Write(piece)
		return unwritten
	})
	unwritten = errors.Join(unwritten, out.Close())
	if err == nil {
		return unwritten
	}
	if !errors.Is(err, fs.ErrNotExist) && unwritten == nil {
		h.err = err
	}
	return errors.Join(unwritten, os.Remove(to)) // a partial value would be wrong
}
