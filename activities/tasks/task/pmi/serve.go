package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine limits the length of a line, in bytes. MPICH's lines, with a key, a value and their
// names, are shorter than 2 KiB.
const maxLine = 64 << 10

// AbortError reports that a process called MPI_Abort.
type AbortError struct{ Code int }

func (e *AbortError) Error() string { return fmt.Sprintf("MPI_Abort was called with %d", e.Code) }

// BarrierFunc waits until all processes have arrived, and returns their values.
type BarrierFunc func(ctx context.Context, brings string) ([]string, error)

// Serve answers a process until it closes the connection, and then returns nil. An [AbortError] is
// the process's request. After any other error, the caller must close the connection, because the
// process waits for an answer until then.
func Serve(ctx context.Context, c io.ReadWriter, s *Session, barrier BarrierFunc) error {
	lines := bufio.NewScanner(c)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	for lines.Scan() {
		r := s.Line(strings.TrimSuffix(lines.Text(), "\r"))
		switch r.Step {
		case Abort:
			return &AbortError{r.Code}
		case Unknown:
			return errors.New(r.Text)
		case Barrier:
			brought, err := barrier(ctx, s.Brings())
			if err != nil {
				return err
			}
			r.Text = s.Released(brought)
		}
		if _, err := io.WriteString(c, r.Text); err != nil {
			return nil //nolint:nilerr // the process is gone
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a PMI-1 request has more than %d bytes", maxLine)
	}
	return nil
}
