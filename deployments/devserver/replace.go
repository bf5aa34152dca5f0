package devserver

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile puts a whole file there at once, which only its owner may read: a reader finds
// either the old one or a complete one.
func replaceFile(path string, text []byte) error {
	// CreateTemp makes it 0600.
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // no longer there once it is renamed
	_, err = tmp.Write(text)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
