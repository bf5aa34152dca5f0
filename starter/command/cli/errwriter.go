package cli

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// errWriter is our stdout or stderr. It remembers the first error of writing, so
// that no command has to look at it: [App.Lost] makes a failure of it.
type errWriter struct {
	io.Writer

	mu      sync.Mutex
	failure error
	broken  func(error)
}

// File returns the file behind it; nil: there is none.
func (o *errWriter) File() *os.File {
	f, _ := o.Writer.(*os.File)
	return f
}

func (o *errWriter) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err == nil {
		return n, nil
	}
	o.mu.Lock()
	first := o.failure == nil
	if first {
		o.failure = err
	}
	broken := o.broken
	o.mu.Unlock()
	if first && broken != nil {
		broken(err)
	}
	return n, err
}

func (o *errWriter) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failure
}

// WhenBroken has f called with the first error of writing of each output, unless it
// is that nobody reads it any more: SIGPIPE tells that. It is called by whoever
// writes, and must not write itself. Nil ends that.
func (a *App) WhenBroken(f func(error)) {
	for _, o := range a.outlets {
		o.mu.Lock()
		o.broken = func(err error) {
			if f != nil && !errors.Is(err, syscall.EPIPE) {
				f(err)
			}
		}
		o.mu.Unlock()
	}
}

// Lost returns the exit code of a command that would have been code: a success is none
// if its output could not be written.
func (a *App) Lost(code int) int {
	a.Printer.Flush()
	for _, o := range a.outlets {
		switch err := o.err(); {
		case err == nil || code != exitcode.OK:
		case errors.Is(err, syscall.EPIPE):
			code = CodeOfSignal(syscall.SIGPIPE) // what others die of
		default:
			a.Say("not all output could be written: %s", err)
			code = exitcode.Machinery
		}
	}
	a.Printer.Flush()
	return code
}
