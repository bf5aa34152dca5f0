package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// UsageError is a mistake in the command line. Each problem is a line that states what is wrong,
// where, and how to correct it.
type UsageError struct {
	About    string // where the problems are, such as a file; may be empty
	Problems []string
}

func (e *UsageError) Error() string {
	if len(e.Problems) == 1 {
		if e.About == "" {
			return e.Problems[0]
		}
		return e.About + ": " + e.Problems[0]
	}
	about := cmp.Or(e.About, "the command line")
	return fmt.Sprintf("%s has %d problems:\n%s", about, len(e.Problems), strings.Join(e.Problems, "\n"))
}

func Usagef(format string, args ...any) error {
	return &UsageError{Problems: []string{fmt.Sprintf(format, args...)}}
}

// Exclusive rewords cobra's error about flags that exclude each other; see
// [cobra.Command.MarkFlagsMutuallyExclusive]. It returns other errors unchanged.
func Exclusive(err error) error {
	if err == nil {
		return nil
	}
	_, given, is := strings.Cut(err.Error(), "none of the others can be; [")
	if !is {
		return err
	}
	flags, _, _ := strings.Cut(given, "]")
	return Usagef("--%s: use only one of them", strings.Join(strings.Fields(flags), " and --"))
}

// ExitError makes the command exit with Code. If Cause is nil, nothing more is printed.
type ExitError struct {
	Code  int
	Cause error
}

func (e *ExitError) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Cause.Error()
}

func (e *ExitError) Unwrap() error { return e.Cause }

// Exit prints err unless it was already printed, and returns its exit code.
func (a *App) Exit(err error) int {
	if err == nil {
		return exitcode.OK
	}
	code := CodeOf(err)
	if text := a.SayError(err); text != "" && a.wantsJSON() && !a.printed {
		_ = a.PrintJSON(map[string]any{"error": text, "exit_code": code}) // the output remembers a failure
	}
	return code
}

// SayError prints err and returns its text. It does nothing if err was already printed.
func (a *App) SayError(err error) (text string) {
	a.AddHint(err)
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.Cause == nil {
		return ""
	}
	text = spec.EscapeControl(err.Error() + fault.LimitOf(err))
	if text == context.DeadlineExceeded.Error() {
		text = connect.Late
	}
	if full := FullDisk(a.Global.StateDir); a.embedded && full != nil && servererror.IsTransient(err) {
		text = full.Error() // the server cannot report it
	}
	a.Say("%s", a.Color.Bad(text))
	return text
}

// AddHint adds a similar run ID to the error about an unknown run.
func (a *App) AddHint(err error) {
	if notFound, ok := errors.AsType[*starter.NotFoundError](err); ok && a.hint != nil && notFound.Hint == "" {
		notFound.Hint = a.hint(notFound.RunID)
	}
}

// wantsJSON reports whether --json is given, even if the flags could not be parsed.
func (a *App) wantsJSON() bool {
	if a.Given != nil || a.Global.JSON {
		return a.Global.JSON
	}
	for _, arg := range a.Args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

func CodeOf(err error) int {
	var (
		exit    *ExitError
		failed  *starter.Error
		refused *starter.RefusedError
	)
	switch {
	case err == nil:
		return exitcode.OK
	case errors.As(err, &exit):
		return exit.Code
	case starter.IsError[*UsageError](err), starter.IsError[*spec.InvalidSpecError](err), starter.IsError[*starter.RunningError](err), starter.IsError[*starter.AmbiguousError](err),
		errors.As(err, &refused) && refused.Invalid:
		return exitcode.Usage
	case errors.As(err, &failed):
		return failed.Result.ExitCode
	default:
		return exitcode.Machinery
	}
}

// Say writes a message to stderr. It indents all lines but the first, so that its end is visible
// among programs' output.
func (a *App) Say(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	a.Printer.println(a.Err, "clusterrun: "+strings.ReplaceAll(text, "\n", "\n  "))
}
