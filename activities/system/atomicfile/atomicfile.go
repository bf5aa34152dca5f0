// Package atomicfile replaces files atomically: a reader sees either the old file or the new one,
// never a part of it.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Write replaces a file. The new content may be lost in a power cut.
func Write(path string, b []byte, mode fs.FileMode) error {
	return write(path, b, mode, func(*os.File) error { return nil })
}

// WriteSynced replaces a file. Once it returns, the new content cannot be lost in a power cut.
func WriteSynced(path string, b []byte, mode fs.FileMode) error {
	if err := write(path, b, mode, (*os.File).Sync); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

func write(path string, b []byte, mode fs.FileMode, sync func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = sync(f)
	}
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// rename is [os.Rename] without its check of what is replaced.
func rename(from, to string) error {
	for {
		switch err := unix.Rename(from, to); {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
	}
}

// SyncDir syncs a directory, so that the names in it cannot be lost in a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
