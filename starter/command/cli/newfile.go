package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// WriteNew writes a file that only this user may read and that is not there yet. Where that
// fails, or ctx ends before all is written, there is none.
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

// UntilDone fails to write once its context has ended.
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

// ErrNothingWritten is returned where somebody has interrupted the writing of a file.
var ErrNothingWritten = &ExitError{Code: exitcode.Interrupted, Cause: errors.New("interrupted; nothing is written")}

func ThereAlready(file string) error {
	return Usagef("%s is there already; name another file", file)
}
