package cli

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// errWriter is our stdout or stderr. It records the first write error, which [App.Lost] turns into
// a failure, so commands need not check for errors.
type errWriter struct {
	io.Writer

	mu      sync.Mutex
	failure error
	broken  func(error)
}

// File returns the underlying file, or nil.
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

// WhenBroken registers f to be called with each output's first write error, except for a broken
// pipe, which SIGPIPE reports. The goroutine that writes calls f, which must not write itself.
// WhenBroken(nil) unregisters it.
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

// Lost returns the exit code of a command that would exit with code. If code is success but
// output could not be written, it returns a failure.
func (a *App) Lost(code int) int {
	a.Printer.Flush()
	for _, o := range a.outlets {
		switch err := o.err(); {
		case err == nil || code != exitcode.OK:
		case errors.Is(err, syscall.EPIPE):
			code = CodeOfSignal(syscall.SIGPIPE) // like other programs
		default:
			a.Say("could not write all output: %s", err)
			code = exitcode.Machinery
		}
	}
	a.Printer.Flush()
	return code
}
