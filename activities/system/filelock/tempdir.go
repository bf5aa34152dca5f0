package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lockName is the name of the lock file in a directory of [TempDir].
const lockName = ".lock"

// TempDir creates a directory with a name that starts with prefix, and returns a function that
// removes it. It first removes such directories that killed processes have left.
func TempDir(parent, prefix string) (dir string, remove func(), err error) {
	entries, _ := os.ReadDir(parent) // if parent is unreadable, MkdirTemp fails
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			removeLeft(filepath.Join(parent, e.Name()))
		}
	}
	if dir, err = os.MkdirTemp(parent, prefix+"*"); err != nil {
		return "", nil, err
	}
	lock, err := Try(filepath.Join(dir, lockName))
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}, nil
}

// removeLeft removes a directory that is not locked. A directory without a lock file is still being
// created.
func removeLeft(dir string) {
	lock, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return
	}
	defer lock.Close()
	if flock(lock, unix.LOCK_EX) == nil {
		_ = os.RemoveAll(dir)
	}
}
