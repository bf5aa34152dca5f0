package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lockName is the file that is locked in a directory of [TempDir].
const lockName = ".lock"

// TempDir makes a directory whose name begins with prefix, and returns what removes it.
// Those that were made in the same place by processes that were killed are removed first.
func TempDir(parent, prefix string) (dir string, remove func(), err error) {
	entries, _ := os.ReadDir(parent) // where it cannot be read, MkdirTemp says so
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

// removeLeft removes a directory whose lock nobody holds. One without a lock is being made.
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
