package taskapi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/privatedir"
)

const (
	// belowDir is the longest path of a socket below the common directory: a directory for
	// its run, its own name, and ".new".
	belowDir = len("/0123456789/0123456789.new")
	// lookEvery is the time between checks for sockets that something has removed, such as a
	// cleaner of /tmp.
	lookEvery = 5 * time.Second
)

// makeDir creates the directory for the sockets of a host worker.
func makeDir(stateDir string) (string, error) {
	return privatedir.Sockets(stateDir, "tasks", belowDir)
}

// CheckDir returns an error if a host worker with that state directory could not have sockets.
func CheckDir(stateDir string) error {
	_, err := makeDir(stateDir)
	return err
}

// makeRunDir creates the directory for the sockets of an endpoint's run.
func (s *Server) makeRunDir(t *Task) (string, error) {
	if _, err := makeDir(s.StateDir); err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, dirOf(t.ID.Run))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if t.User == nil {
		return dir, nil
	}
	return dir, s.letThrough(dir)
}

// letThrough lets other users reach the sockets of their tasks, in the directory of a run,
// whose names they know. They cannot list or change the directories, which have other files of
// the host worker.
func (s *Server) letThrough(dir string) error {
	const passable = 0o711
	dirs := []string{s.dir, dir}
	if filepath.Dir(s.dir) != s.StateDir {
		dirs = append(dirs, filepath.Dir(s.dir)) // also belongs to the host worker; see [privatedir.Sockets]
	}
	for _, d := range dirs {
		if err := os.Chmod(d, passable); err != nil {
			return err
		}
	}
	return nil
}

// keepSockets makes sockets again that were removed, until ctx is done.
func (s *Server) keepSockets(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.restore()
		}
	}
}

// restore makes the sockets again that were removed.
func (s *Server) restore() {
	s.files.Lock()
	defer s.files.Unlock()
	for _, e := range s.tasks {
		if e.listener != nil {
			s.restoreOf(e)
		}
	}
}

// restoreOf makes the socket of a task again if it was removed. s.files must be held.
func (s *Server) restoreOf(e *endpoint) {
	if _, err := os.Lstat(e.path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	view := e.view()
	_, err := s.makeRunDir(&view)
	if err == nil {
		err = s.bind(e)
	}
	switch {
	case err == nil:
		s.Log.Warn("The socket of a task was removed; it is created again.", zap.String("task", e.id.Task), zap.String("path", e.path))
	case !e.missing:
		s.Log.Warn("The socket of a task was removed, and cannot be created again yet.", zap.String("task", e.id.Task), zap.Error(err))
	}
	e.missing = err != nil
}

// rest closes the socket of a task that has ended, of which a sweep has thousands. [Server.Listen]
// opens it again.
func (s *Server) rest(e *endpoint) {
	s.files.Lock()
	defer s.files.Unlock()
	s.unbind(e)
}

// unbind removes the socket of a task. s.files must be held.
func (s *Server) unbind(e *endpoint) {
	if e.listener != nil {
		_ = e.listener.Close() // its connections stay
		_ = os.Remove(e.path)
		e.listener = nil
	}
}

// bind serves a task at its path, and replaces its previous listener. s.files must be held.
func (s *Server) bind(e *endpoint) error {
	l, err := s.listen(e)
	if err != nil {
		return err
	}
	if e.listener != nil {
		_ = e.listener.Close() // its connections stay
	}
	e.listener = l
	s.group.Go(func(ctx context.Context) {
		defer context.AfterFunc(ctx, func() { _ = l.Close() })()
		_ = s.http.Serve(l)
	})
	return nil
}
