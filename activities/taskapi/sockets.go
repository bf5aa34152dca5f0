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
	// maxSocketPath is the longest path of a socket on Linux (sun_path has 108 bytes, the
	// last of them zero).
	maxSocketPath = 107
	// belowDir is the longest path of a socket below the common directory: a directory for
	// its run, its own name, and ".new".
	belowDir = len("/0123456789/0123456789.new")
)

// socketDir creates the directory for the sockets of a host worker: below its state directory
// or, if that makes paths too long for a socket, below the first shared directory that does
// not.
func socketDir(stateDir string, shared []string) (string, error) {
	own := filepath.Join(stateDir, "tasks")
	if len(own)+belowDir <= maxSocketPath {
		return own, privateDir(own)
	}
	// Only one host worker uses the state directory, and so this name, at a time.
	name := short(stateDir)
	for _, parent := range shared {
		dir := filepath.Join(parent, name)
		if parent == "" || !filepath.IsAbs(parent) || len(dir)+belowDir > maxSocketPath {
			continue
		}
		// The parent of this directory may be writable by others.
		if err := privateDir(parent); err != nil {
			return "", err
		}
		return dir, privateDir(dir)
	}
	return "", fmt.Errorf("the paths of the sockets of tasks would be too long (Linux allows %d bytes): choose a shorter state directory than %s, or a shorter TMPDIR", maxSocketPath, stateDir)
}

// sharedDirs returns directories for sockets that cannot be below the state directory.
func sharedDirs() []string {
	var dirs []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		dirs = append(dirs, filepath.Join(dir, "clusterrun"))
	}
	name := "clusterrun-" + strconv.Itoa(os.Getuid())
	return append(dirs, filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name))
}

// letThrough lets other users reach the sockets of their tasks, in the directory of a run,
// whose names they know. They cannot list or change the directories, which have other files
// of ours.
func (s *Server) letThrough(dir string) error {
	const passable = 0o711
	dirs := []string{s.dir, dir}
	if filepath.Dir(s.dir) != s.StateDir {
		dirs = append(dirs, filepath.Dir(s.dir)) // also ours; see [socketDir]
	}
	for _, d := range dirs {
		if err := os.Chmod(d, passable); err != nil {
			return err
		}
	}
	return nil
}

// privateDir creates a directory that only we may read. An existing directory must belong to
// us: its owner could replace our sockets with others.
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
