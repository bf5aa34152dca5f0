// Package fault has the errors that the parts of a supervisor have in common: refusals of
// requests, and why a program was not started.
package fault

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// Kinds of [Refusal] that more than one part has.
var (
	// ErrPortTaken means that a port wanted by number is in use, or that none are left.
	ErrPortTaken = errors.New("port taken")
	// ErrLimit means that this host could not do it even if it did nothing else, because of a
	// limit that its owner has set.
	ErrLimit = errors.New("limit")
	// ErrInvalid means that the request is invalid.
	ErrInvalid = errors.New("invalid")
)

// Refusal is an error with a text of its own that matches its kind with [errors.Is].
type Refusal struct {
	Kind error
	Text string
}

func (r *Refusal) Error() string { return r.Text }
func (r *Refusal) Unwrap() error { return r.Kind }

// Refuse returns a refusal.
func Refuse(kind error, text string) error { return &Refusal{Kind: kind, Text: text} }

// Start is why a program was not started, and the exit code for that.
type Start struct {
	Text string
	Code int
}

func (e *Start) Error() string { return e.Text }

// NotStarted returns a [Start] with the code [exitcode.NotExecutable].
func NotStarted(text string) error { return &Start{Text: text, Code: exitcode.NotExecutable} }

// Failed returns why a program was not started, from an error in doing something for it.
func Failed(doing string, err error) error {
	return &Start{Text: doing + ": " + Reason(err), Code: CodeOf(err)}
}

// CodeOf returns the exit code for a program that was not started because of err. It is
// [exitcode.Machinery] if the host has reached a limit, since a program may exit with the other.
func CodeOf(err error) int {
	for _, limit := range []error{unix.EMFILE, unix.ENFILE, unix.ENOSPC, unix.EDQUOT, unix.EAGAIN, unix.ENOMEM} {
		if errors.Is(err, limit) {
			return exitcode.Machinery
		}
	}
	return exitcode.NotExecutable
}

// Reason returns the text of the system's error in err, without the names of calls and files,
// or the text of err if it contains none.
func Reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error() + LimitOf(errno)
	}
	return err.Error()
}

// LimitOf returns the limit of open files that caused err, in brackets, to be appended to
// its text. It is empty for other errors.
//
// The soft limit does not matter: the runtime of Go raises it to the hard limit at start,
// and restores it for the programs that it executes, such as tasks.
func LimitOf(err error) string {
	switch {
	case errors.Is(err, unix.EMFILE):
		return fmt.Sprintf(" (a process may have %d open files here; raise that limit: ulimit -n)", MaxFiles())
	case errors.Is(err, unix.ENFILE):
		return " (the machine has reached its limit of open files; raise that limit: sysctl fs.file-max)"
	}
	return ""
}

// processLimit returns, in brackets, the limit that keeps this user from having another process.
func processLimit() string {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return " (a limit of processes or memory is reached)"
	}
	return fmt.Sprintf(" (this user may have %d processes and threads here; raise that limit: ulimit -u)", limit.Cur)
}

// MaxFiles returns the hard limit of open files.
func MaxFiles() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Max
}
