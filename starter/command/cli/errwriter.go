package cli

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// errWriter is our stdout or stderr. It remembers the first write error, so that commands need
// not check for it: [App.Lost] turns it into a failure.
type errWriter struct {
	io.Writer

	mu      sync.Mutex
	failure error
	broken  func(error)
}

// File returns the file that it writes to, or nil.
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

// WhenBroken registers f, which is called with the first write error of each output. A broken
// pipe is left out: SIGPIPE reports it. f is called by the goroutine that writes, and must not
// write itself. WhenBroken(nil) removes it.
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

// Lost returns the exit code of a command that would end with code. If that is success but
// output could not be written, it returns a failure.
func (a *App) Lost(code int) int {
	a.Printer.Flush()
	for _, o := range a.outlets {
		switch err := o.err(); {
		case err == nil || code != exitcode.OK:
		case errors.Is(err, syscall.EPIPE):
			code = CodeOfSignal(syscall.SIGPIPE) // as with other programs
		default:
			a.Say("not all output could be written: %s", err)
			code = exitcode.Machinery
		}
	}
	a.Printer.Flush()
	return code
}
