package taskapi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	// maxSocketPath is what Linux takes as the path of a socket (sun_path has 108
	// bytes, the last of them zero).
	maxSocketPath = 107
	// belowDir is the longest path of a socket below the directory of all of
	// them: a directory for its run, its own name, and ".new".
	belowDir = len("/0123456789/0123456789.new")
)

// socketDir makes the directory of the sockets of a host worker: below its state
// directory, unless that makes paths too long for a socket; then below the first
// of those that belong to the user alone and do not.
func socketDir(stateDir string, shared []string) (string, error) {
	own := filepath.Join(stateDir, "tasks")
	if len(own)+belowDir <= maxSocketPath {
		return own, privateDir(own)
	}
	// The state directory is locked by one host worker, so this is, too.
	name := short(stateDir)
	for _, parent := range shared {
		dir := filepath.Join(parent, name)
		if parent == "" || !filepath.IsAbs(parent) || len(dir)+belowDir > maxSocketPath {
			continue
		}
		// Its parent is in a place where others may write, too.
		if err := privateDir(parent); err != nil {
			return "", err
		}
		return dir, privateDir(dir)
	}
	return "", fmt.Errorf("the paths of the sockets of tasks would be too long (Linux takes %d bytes): choose a shorter state directory than %s, or a shorter TMPDIR", maxSocketPath, stateDir)
}

// sharedDirs returns where sockets may lie that cannot below the state directory.
func sharedDirs() []string {
	var dirs []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		dirs = append(dirs, filepath.Join(dir, "clusterrun"))
	}
	name := "clusterrun-" + strconv.Itoa(os.Getuid())
	return append(dirs, filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name))
}

// letThrough lets other users get to what they know the name of and may use: the sockets of
// their tasks, in the directory of a run. They have no say over the directories, where other
// files of ours are.
func (s *Server) letThrough(dir string) error {
	const passable = 0o711
	dirs := []string{s.dir, dir}
	if filepath.Dir(s.dir) != s.StateDir {
		dirs = append(dirs, filepath.Dir(s.dir)) // one of ours as well; see [socketDir]
	}
	for _, d := range dirs {
		if err := os.Chmod(d, passable); err != nil {
			return err
		}
	}
	return nil
}

// privateDir makes a directory that only we may look into. One that is there
// already has to be ours: whoever owns it could put their sockets in the place of
// ours.
func privateDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("sockets of tasks: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("sockets of tasks: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("sockets of tasks: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("sockets of tasks: %s is not a directory; remove it", dir)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("sockets of tasks: %s belongs to another user; remove it, or choose a shorter state directory", dir)
	}
	return os.Chmod(dir, 0o700)
}
