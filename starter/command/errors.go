package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const exitCodesOfRuns = `Exit codes:
  0      the run succeeded
  N      exit code of the process that was the root cause; 128+N if signal N ended it
  124    timeout or max_run_time passed, or the grace of a stop together
  125    clusterrun or the server failed, or the run was terminated without a result,
         or it succeeded but its output could not be written
  126    a program cannot be executed; 127: it was not found
  130    the run was stopped (by Ctrl-C or otherwise); 128+N if signal N stopped this command
  2      mistake in the command line, or an invalid run spec`

const exitCodesOfRequests = `Exit codes:
  0    done
  2    mistake in the command line, or a request that the run rejects as invalid
  125  the server or the run could not do it`

// severalTasks is what requests to a run have in common.
const severalTasks = `TASK is the name of a task, such as worker-3, or its rank.

If it fails for one task, the others are still done; the command says so, and its exit
code is not 0.`

// usageError is a mistake of whoever typed the command. Every problem is a line
// that says what is wrong, where, and what would be right.
type usageError struct {
	about    string // what the problems are in, such as a file; may be empty
	problems []string
}

func (e *usageError) Error() string {
	if len(e.problems) == 1 {
		if e.about == "" {
			return e.problems[0]
		}
		return e.about + ": " + e.problems[0]
	}
	about := e.about
	if about == "" {
		about = "the command line"
	}
	return fmt.Sprintf("%s has %d problems:\n%s", about, len(e.problems), strings.Join(e.problems, "\n"))
}

func usagef(format string, args ...any) error {
	return &usageError{problems: []string{fmt.Sprintf(format, args...)}}
}

// exitError ends the command with a code of its own. Without a cause everything
// has been said.
type exitError struct {
	code  int
	cause error
}

func (e *exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exitError) Unwrap() error { return e.cause }

// exit prints err, unless that has been done, and returns the exit code for it.
func (a *app) exit(err error) int {
	if err == nil {
		return exitcode.OK
	}
	a.addHint(err)
	code := codeOf(err)
	var exit *exitError
	if !errors.As(err, &exit) || exit.cause != nil {
		text := spec.Visible(err.Error() + fault.LimitOf(err))
		a.say("%s", a.color.bad(text))
		if a.wantsJSON() && !a.printed {
			_ = a.printJSON(map[string]any{"error": text, "exit_code": code}) // the outlet remembers a failure
		}
	}
	return code
}

// addHint adds to the error for a run that the server does not know what was probably meant.
func (a *app) addHint(err error) {
	var notFound *starter.NotFoundError
	if errors.As(err, &notFound) && a.hint != nil && notFound.Hint == "" {
		notFound.Hint = a.hint(notFound.RunID)
	}
}

// wantsJSON reports whether --json is among the flags, also where those could not be read.
func (a *app) wantsJSON() bool {
	if a.given != nil || a.global.json {
		return a.global.json
	}
	for _, arg := range a.args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

func codeOf(err error) int {
	var (
		exit    *exitError
		usage   *usageError
		invalid *spec.InvalidSpecError
		running *starter.RunningError
		many    *starter.AmbiguousError
		failed  *starter.Error
		refused *starter.RefusedError
	)
	switch {
	case err == nil:
		return exitcode.OK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage), errors.As(err, &invalid), errors.As(err, &running), errors.As(err, &many),
		errors.As(err, &refused) && refused.Invalid:
		return exitcode.Usage
	case errors.As(err, &failed):
		return failed.Result.ExitCode
	default:
		return exitcode.Machinery
	}
}

// say writes a message to stderr. Its later lines are indented, so that one can
// see where it ends among the output of programs.
func (a *app) say(format string, args ...any) {
	text := inLocalTime(strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
	a.voice.println(a.err, "clusterrun: "+strings.ReplaceAll(text, "\n", "\n  "))
}
