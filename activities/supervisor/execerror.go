package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// startError is why a program could not be executed, with the exit code that a shell would
// return.
type startError struct {
	text string
	code int
}

func (e *startError) Error() string { return e.text }

const (
	exitNotFound      = 127
	exitNotExecutable = 126
)

// reasonOf returns the kernel's part of an error, without paths.
func reasonOf(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error() + LimitOf(errno)
	}
	return err.Error()
}

// execError explains why a program could not be executed.
func execError(c Command, err error) error {
	if se := (*startError)(nil); errors.As(err, &se) {
		return se // it has its own text
	}
	e := &startError{fmt.Sprintf("cannot execute %s: %s", c.Path, reasonOf(err)), exitNotExecutable}
	switch {
	case errors.Is(err, unix.ENOENT):
		if _, serr := os.Stat(c.Path); serr != nil {
			e.code = exitNotFound
		} else if interpreter := Interpreter(c.Path); interpreter != "" {
			e.text = fmt.Sprintf("cannot execute %s: its interpreter %s does not exist", c.Path, interpreter)
			e.code = exitNotFound
		} else {
			e.text = fmt.Sprintf("cannot execute %s: the loader it was linked for does not exist here", c.Path)
		}
	case errors.Is(err, unix.ENOEXEC):
		e.text += " (neither a program of this machine's kind nor a script that begins with #!)"
	case errors.Is(err, unix.E2BIG):
		size := 0
		for _, s := range slices.Concat(c.Args, c.Env) {
			size += len(s) + 1
		}
		e.text += fmt.Sprintf(" (%d bytes of arguments and environment)", size)
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
		e.text = fmt.Sprintf("cannot fork for %s: %s (a limit of processes or memory is reached)", c.Path, reasonOf(err))
	}
	return e
}

// Interpreter returns the program that a script names in its first line; "" if path is not a
// script.
func Interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return ""
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}
