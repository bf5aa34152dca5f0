// Package filelock locks files with flock(2). A lock belongs to an open file. A process that
// inherits the file also holds the lock, and the kernel releases the lock when the last such
// process closes the file or exits. The file itself is never removed; otherwise, two processes
// could hold locks on different files of the same name.
package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked means that another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Try locks a file, which it creates if necessary. Closing the file releases the lock.
func Try(path string) (*os.File, error) { return try(path, os.O_CREATE, unix.LOCK_EX) }

// TryExisting is like [Try] but fails if the file does not exist.
func TryExisting(path string) (*os.File, error) { return try(path, 0, unix.LOCK_EX) }

// TryShared is like [Try], but takes a shared lock, which any number of processes can hold while no
// process holds the exclusive lock.
func TryShared(path string) (*os.File, error) { return try(path, os.O_CREATE, unix.LOCK_SH) }

func try(path string, create, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|create, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrLocked
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// IsHeld reports whether a process holds a lock from [Try]. IsHeld briefly holds a shared lock, so
// other processes should try more than once.
func IsHeld(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := flock(f, unix.LOCK_SH); !errors.Is(err, ErrLocked) {
		return false, err
	}
	return true, nil
}
