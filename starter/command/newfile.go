package command

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// writeNew writes a file that only this user may read and that is not there yet. Where that
// fails there is none.
func writeNew(file string, write func(io.Writer) error) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return thereAlready(file)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

func thereAlready(file string) error {
	return usagef("%s is there already; name another file with -o", file)
}
