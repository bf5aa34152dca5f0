package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WriteNew writes a file that only this user may read. It fails with [fs.ErrExist] if the file
// already exists, and leaves nothing behind if write fails. If the file system supports unnamed
// files, the file is named only once it is complete, so that nothing is left behind even if this
// process is killed.
func WriteNew(path string, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	f, err := createUnnamed(filepath.Dir(path))
	if errors.Is(err, errNoUnnamed) {
		f, err = createHidden(path)
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		failed.Path = path // the caller only knows this name
	}
	if err != nil {
		return err
	}
	return f.become(path, write)
}

// newFile is a file that does not yet have its name. name closes the file and gives it its name.
// remove removes the file if it is not to get its name.
type newFile struct {
	*os.File
	name   func(path string) error
	remove func() error
}

// become writes the file and then gives it its name.
func (f newFile) become(path string, write func(io.Writer) error) error {
	err := write(f)
	if err == nil {
		err = f.name(path)
	}
	if err != nil {
		_ = f.Close() // the file may already be closed
		err = errors.Join(err, f.remove())
	}
	return err
}

// errNoUnnamed means that a file system, such as NFS, does not support unnamed files.
var errNoUnnamed = errors.New("no files without names")

func createUnnamed(dir string) (newFile, error) {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	// Kernels that do not know this flag treat it as O_DIRECTORY.
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		return newFile{}, errNoUnnamed
	}
	if err != nil {
		return newFile{}, err
	}
	self := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if _, err := os.Lstat(self); err != nil {
		_ = f.Close()
		return newFile{}, errNoUnnamed // the file could not be given a name
	}
	return newFile{
		File: f,
		name: func(path string) error {
			if err := unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
				return &fs.PathError{Op: "create", Path: path, Err: err}
			}
			return f.Close()
		},
		remove: func() error { return nil },
	}, nil
}

func createHidden(path string) (newFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return newFile{}, err
	}
	return newFile{
		File: f,
		name: func(path string) error {
			if err := f.Close(); err != nil { // buffered data may not fit on the disk
				return err
			}
			return renameNew(f.Name(), path)
		},
		remove: func() error { return os.Remove(f.Name()) },
	}, nil
}

// renameNew renames a file unless the new name already exists.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		// The file system, such as NFS, does not support the flag. Use a link, which never replaces
		// a file.
		if err := os.Link(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
