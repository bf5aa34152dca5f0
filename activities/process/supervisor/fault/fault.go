// Package fault defines errors that a supervisor's parts share: refused requests, and why a program
// was not started.
package fault

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// Kinds of [Refusal] that several parts use.
var (
	// ErrPortTaken means that a requested port is in use, or that none are left.
	ErrPortTaken = errors.New("port taken")
	// ErrLimit means that, because of a limit set by its owner, this host could not meet the
	// request even when idle.
	ErrLimit = errors.New("limit")
	// ErrInvalid means that the request is invalid.
	ErrInvalid = errors.New("invalid")
)

// Refusal is an error with its own message that matches its kind with [errors.Is].
type Refusal struct {
	Kind error
	Text string
}

func (r *Refusal) Error() string { return r.Text }
func (r *Refusal) Unwrap() error { return r.Kind }

// Refuse returns a refusal.
func Refuse(kind error, text string) error { return &Refusal{Kind: kind, Text: text} }

// Start describes why a program was not started, and contains the resulting exit code.
type Start struct {
	Text string
	Code int
}

func (e *Start) Error() string { return e.Text }

// NotStarted returns a [Start] with the code [exitcode.NotExecutable].
func NotStarted(text string) error { return &Start{Text: text, Code: exitcode.NotExecutable} }

// Failed returns the error for a program that was not started because of err, which occurred while
// doing what doing describes.
func Failed(doing string, err error) error {
	return &Start{Text: doing + ": " + Reason(err), Code: CodeOf(err)}
}

// CodeOf returns the exit code for a program that was not started because of err. It is
// [exitcode.Machinery] if the host has reached a limit, because the usual code could also be a
// program's.
func CodeOf(err error) int {
	for _, limit := range []error{unix.EMFILE, unix.ENFILE, unix.ENOSPC, unix.EDQUOT, unix.EAGAIN, unix.ENOMEM} {
		if errors.Is(err, limit) {
			return exitcode.Machinery
		}
	}
	return exitcode.NotExecutable
}

// Reason returns the message of the system error in err, without the names of calls and files, or
// err's message if it contains none.
func Reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error() + LimitOf(errno)
	}
	return err.Error()
}

// LimitOf returns the open file limit that caused err, in brackets, to append to its message, or ""
// for other errors.
//
// The soft limit does not matter, because Go's runtime raises the soft limit to the hard limit when
// it starts, and restores it for the programs that it executes, such as tasks.
func LimitOf(err error) string {
	switch {
	case errors.Is(err, unix.EMFILE):
		return fmt.Sprintf(" (a process may have %d open files on this host; raise the limit: ulimit -n)", MaxFiles())
	case errors.Is(err, unix.ENFILE):
		return " (the machine has reached its limit of open files; raise the limit: sysctl fs.file-max)"
	}
	return ""
}

// processLimit returns, in brackets, the limit that denies this user another process.
func processLimit() string {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return " (a limit of processes or memory is reached)"
	}
	return fmt.Sprintf(" (this user may have %d processes and threads on this host; raise the limit: ulimit -u)", limit.Cur)
}

// MaxFiles returns the hard limit of open files.
func MaxFiles() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Max
}
