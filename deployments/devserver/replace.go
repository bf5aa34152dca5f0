package devserver

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile atomically replaces a file with one that only its owner may read: a reader finds
// either the old file or the complete new one.
func replaceFile(path string, text []byte) error {
	// CreateTemp sets the mode to 0600.
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // it does nothing after the rename
	_, err = tmp.Write(text)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
