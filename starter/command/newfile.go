package command

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// writeNew writes a file that only this user may read and that is not there yet. Where that
// fails, or ctx ends before all is written, there is none.
func writeNew(ctx context.Context, file string, write func(io.Writer) error) error {
	err := atomicfile.WriteNew(file, func(w io.Writer) error {
		if err := write(untilDone{ctx, w}); err != nil {
			return err
		}
		return ctx.Err()
	})
	if errors.Is(err, fs.ErrExist) {
		return thereAlready(file)
	}
	return err
}

// untilDone fails to write once its context has ended.
type untilDone struct {
	ctx context.Context
	w   io.Writer
}

func (u untilDone) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(b)
}

// errNothingWritten is returned where somebody has interrupted the writing of a file.
var errNothingWritten = &exitError{code: exitcode.Interrupted, cause: errors.New("interrupted; nothing is written")}

func thereAlready(file string) error {
	return usagef("%s is there already; name another file", file)
}
