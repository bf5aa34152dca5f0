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
	// belowDir is the maximum length of a socket path within the common directory: the name of a
	// run's directory, the socket's name, and ".new".
	belowDir = len("/0123456789/0123456789.new")
	// lookEvery is the interval between checks for removed sockets, for example by a cleaner of
	// /tmp.
	lookEvery = 5 * time.Second
)

// makeDir creates a host worker's socket directory.
func makeDir(stateDir string) (string, error) {
	return privatedir.Sockets(stateDir, "tasks", belowDir)
}

// CheckDir returns an error if a host worker with the given state directory cannot have sockets.
func CheckDir(stateDir string) error {
	_, err := makeDir(stateDir)
	return err
}

// makeRunDir creates the socket directory for an endpoint's run.
func (s *Server) makeRunDir(t *Task) (string, error) {
	if _, err := makeDir(s.StateDir); err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, dirOf(t.ID.Run))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if t.User == nil {
		return dir, nil
	}
	return dir, s.letThrough(dir)
}

// letThrough lets other users reach their tasks' sockets, which have known names in a run's
// directory. These users cannot list or change the directories, which contain other files of the
// host worker.
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

// keepSockets recreates removed sockets until ctx is done.
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

// restore recreates removed sockets.
func (s *Server) restore() {
	s.files.Lock()
	defer s.files.Unlock()
	for _, e := range s.tasks {
		if e.listener != nil {
			s.restoreOf(e)
		}
	}
}

// restoreOf recreates a task's socket if it was removed. s.files must be held.
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
		s.Log.Warn("A task's socket was removed; creating it again.", zap.String("task", e.id.Task), zap.String("path", e.path))
	case !e.missing:
		s.Log.Warn("A task's socket was removed, and cannot be created again yet.", zap.String("task", e.id.Task), zap.Error(err))
	}
	e.missing = err != nil
}

// rest closes an ended task's socket, because a sweep has thousands of ended tasks. [Server.Listen]
// reopens the socket.
func (s *Server) rest(e *endpoint) {
	s.files.Lock()
	defer s.files.Unlock()
	s.unbind(e)
}

// unbind removes a task's socket. s.files must be held.
func (s *Server) unbind(e *endpoint) {
	if e.listener != nil {
		_ = e.listener.Close() // its connections stay open open
		_ = os.Remove(e.path)
		e.listener = nil
	}
}

// bind serves a task at its path, replacing its previous listener. s.files must be held.
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
