package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// Exec explains why a program could not be executed with args and env.
func Exec(path string, args, env []string, err error) error {
	if se, ok := errors.AsType[*Start](err); ok {
		return se // it has its own message
	}
	e := &Start{Text: fmt.Sprintf("cannot execute %s: %s", path, Reason(err)), Code: CodeOf(err)}
	switch {
	case errors.Is(err, unix.ENOENT):
		if _, serr := os.Stat(path); serr != nil {
			e.Code = exitcode.NotFound
		} else if interpreter, carriage := Interpreter(path); carriage {
			e.Text = fmt.Sprintf("cannot execute %s: its first line ends with a carriage return, as in Windows files", path)
			e.Code = exitcode.NotFound
		} else if interpreter != "" {
			e.Text = fmt.Sprintf("cannot execute %s: its interpreter %s does not exist", path, interpreter)
			e.Code = exitcode.NotFound
		} else {
			e.Text = fmt.Sprintf("cannot execute %s: the loader it was linked for does not exist on this host", path)
		}
	case errors.Is(err, unix.ENOEXEC):
		e.Text += " (neither a program for this machine's architecture nor a script that starts with #!)"
	case errors.Is(err, unix.E2BIG):
		size := 0
		for _, s := range slices.Concat(args, env) {
			size += len(s) + 1
		}
		e.Text += fmt.Sprintf(" (%d bytes of arguments and environment)", size)
	case errors.Is(err, unix.EAGAIN):
		e.Text = fmt.Sprintf("cannot fork for %s: %s%s", path, Reason(err), processLimit())
	case errors.Is(err, unix.ENOMEM):
		e.Text = fmt.Sprintf("cannot fork for %s: %s (a limit of processes or memory is reached)", path, Reason(err))
	}
	return e
}

// InterpreterFor returns the interpreter for a script, judging by its file name extension, or ""
// for other files.
func InterpreterFor(name string) string {
	return map[string]string{".py": "python3", ".sh": "bash"}[filepath.Ext(name)]
}

// Interpreter returns the program named in the first line of a script, or "" if path is not a
// script. carriage reports whether the line ends in a carriage return, which the kernel and env
// treat as part of the name, so that they do not find the program.
func Interpreter(path string) (program string, carriage bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return "", false
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 {
		return "", false
	}
	last := words[len(words)-1]
	carriage = strings.HasSuffix(last, "\r") && (len(words) == 1 || filepath.Base(words[0]) == "env")
	return strings.TrimSuffix(words[0], "\r"), carriage
}
