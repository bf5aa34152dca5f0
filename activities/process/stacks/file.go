package stacks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// IsFile reports whether name is the name of a stacks file, which is next to a process's logs.
func IsFile(name string) bool {
	matches, err := path.Match("stacks-*.txt", name) // separators do not match
	return err == nil && matches
}

// create creates a new file <dir>/<prefix>stacks-<time>.txt, with a number if a file for that
// millisecond already exists.
func create(root *os.Root, dir, prefix string, taken time.Time) (*os.File, error) {
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	base := filepath.Join(dir, prefix+"stacks-"+taken.UTC().Format("20060102T150405.000Z"))
	const most = 1000
	for n := 1; ; n++ {
		name := base + ".txt"
		if n > 1 {
			name = fmt.Sprintf("%s-%d.txt", base, n)
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) || n == most {
			return f, err
		}
	}
}

// save writes the report and returns its path. It removes an incomplete file, which readers would
// assume to be complete.
func (r *report) save() (string, error) {
	if err := os.MkdirAll(r.Root, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(r.Root)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := create(root, filepath.Clean(r.Dir), r.Prefix, r.taken)
	if err != nil {
		return "", err
	}
	if err := errors.Join(r.write(f), f.Close()); err != nil {
		if name, relErr := filepath.Rel(r.Root, f.Name()); relErr == nil {
			_ = root.Remove(name)
		}
		return "", err
	}
	return f.Name(), nil
}
