// Package filelock locks files with flock(2). A lock is held by an open file: whoever
// inherits the file has it too, and the kernel frees it when the last of them is closed,
// however the processes end. The file itself stays, because removing it would let
// another process lock a name that is gone.
package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned where another process has the lock.
var ErrLocked = errors.New("locked by another process")

// Try locks a file, which it makes if need be. Closing the file frees the lock.
func Try(path string) (*os.File, error) { return try(path, unix.LOCK_EX) }

// TryShared is [Try] for a lock that many may have, as long as nobody has it by Try.
func TryShared(path string) (*os.File, error) { return try(path, unix.LOCK_SH) }

func try(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
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

// IsHeld reports whether some process has the lock by [Try]. It has the lock itself for an
// instant, shared, so that others should try more than once.
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
