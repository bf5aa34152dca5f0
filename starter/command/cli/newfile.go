package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// WriteNew creates a file that only this user may read. The file must not exist yet. If writing
// fails or ctx is done first, no file is left.
func WriteNew(ctx context.Context, file string, write func(io.Writer) error) error {
	err := atomicfile.WriteNew(file, func(w io.Writer) error {
		if err := write(UntilDone{ctx, w}); err != nil {
			return err
		}
		return ctx.Err()
	})
	if errors.Is(err, fs.ErrExist) {
		return ThereAlready(file)
	}
	return err
}

// UntilDone is a writer that fails once its context is done.
type UntilDone struct {
	Ctx context.Context
	W   io.Writer
}

func (u UntilDone) Write(b []byte) (int, error) {
	if err := u.Ctx.Err(); err != nil {
		return 0, err
	}
	return u.W.Write(b)
}

// ErrNothingWritten reports that writing a file was interrupted.
var ErrNothingWritten = &ExitError{Code: exitcode.Interrupted, Cause: errors.New("interrupted; nothing was written")}

func ThereAlready(file string) error {
	return Usagef("%s already exists; name another file", file)
}
