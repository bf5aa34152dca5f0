package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// report prints how a run ended, root cause first, and returns an error that has the exit
// code and no text. JSON of it goes to stdout.
func report(a *app, id string, result *spec.RunResult, err error) error {
	result, err = resultOf(result, err)
	if err != nil || result == nil {
		return err
	}
	printed := printResult(a, result)
	return cmp.Or(reportEnd(a, id, result), printed)
}

// resultOf returns the result of a run that has ended: one that was terminated, or is out of
// reach, has left none, and there is one all the same. The error is that of a run that has
// not ended.
func resultOf(result *spec.RunResult, err error) (*spec.RunResult, error) {
	var (
		failed     *starter.Error
		terminated *starter.TerminatedError
	)
	switch {
	case err == nil, result != nil && errors.As(err, &failed):
		return result, nil
	case result != nil:
		return nil, err
	case errors.As(err, &terminated):
		return terminated.Result(), nil
	}
	return unreachable(err), nil
}

// reportEnd says how a run ended, and returns an error that has the exit code and no text.
func reportEnd(a *app, id string, result *spec.RunResult) error {
	a.say("%s", verdict(a, id, result))
	if result.Verdict == spec.VerdictSucceeded {
		return nil
	}
	handOn(a, result.FirstFailure)
	return &exitError{code: max(result.ExitCode, 1)}
}

// unreachable returns the result of a run of which the server does not tell how it ended.
func unreachable(err error) *spec.RunResult {
	return &spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: "Unreachable", Message: err.Error(), ExitCode: codeOf(err)}
}

// printResult prints the result where JSON is wanted.
func printResult(a *app, r *spec.RunResult) error {
	if !a.global.json {
		return nil
	}
	if r.Tasks == nil { // nothing was started: null is no list to programs
		changed := *r
		changed.Tasks = []spec.TaskResult{}
		r = &changed
	}
	return a.printJSON(r)
}

// verdict returns the report in a few lines.
func verdict(a *app, id string, r *spec.RunResult) string {
	var b strings.Builder
	switch r.Verdict {
	case spec.VerdictSucceeded:
		fmt.Fprintf(&b, "run %s %s%s", id, a.color.good(string(r.Verdict)), afterRestarts(r))
	default:
		fmt.Fprintf(&b, "run %s %s (exit code %d)", id, a.color.bad(string(r.Verdict)), r.ExitCode)
	}
	if r.Message != "" {
		b.WriteString("\n" + strings.TrimSpace(r.Message))
	}
	for _, line := range stoppedTogether(r) {
		b.WriteString("\n" + line)
	}
	if f := r.FirstFailure; f != nil && f.LogDir != "" && !names(r.Message, f.LogDir) {
		fmt.Fprintf(&b, "\nlogs of %s: %s", f.Task, f.LogDir)
	}
	for _, t := range r.Tasks {
		if line := returned(t); line != "" {
			b.WriteString("\n" + line)
			if len(t.Value) == 0 {
				b.WriteString(" on " + t.Host)
			}
		}
	}
	b.WriteString(badEnds(r))
	return b.String()
}

// returned says what a task has returned. Empty: nothing.
func returned(t spec.TaskResult) string {
	switch {
	case len(t.Value) > 0:
		return fmt.Sprintf("%s returned %s", t.Name, short(t.Value))
	case t.Exit != nil && t.Exit.ValueFile != "":
		return fmt.Sprintf("%s returned what is in %s", t.Name, t.Exit.ValueFile)
	}
	return ""
}

// afterRestarts returns what a success has cost.
func afterRestarts(r *spec.RunResult) string {
	n, what := r.Generation, " of the group"
	if n == 0 {
		what = ""
		for _, t := range r.Tasks {
			n += t.Restarts
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return ", after 1 restart" + what
	}
	return fmt.Sprintf(", after %d restarts%s", n, what)
}

// badEnds lists the other tasks that ended badly, as far as the run's message
// does not speak of them.
func badEnds(r *spec.RunResult) string {
	var tasks []spec.TaskResult
	for _, t := range r.Tasks {
		if t.Failure != nil && !names(r.Message, t.Name) {
			tasks = append(tasks, t)
		}
	}
	return lines(tasks)
}

// names reports whether a text has a name, and not only as a part of a longer one.
func names(text, name string) bool {
	more := func(s string, last bool) bool {
		r, _ := utf8.DecodeRuneInString(s)
		if last {
			r, _ = utf8.DecodeLastRuneInString(s)
		}
		return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_'
	}
	for before, after, found := strings.Cut(text, name); found; {
		if !more(before, true) && !more(after, false) {
			return true
		}
		before, after, found = strings.Cut(after, name)
	}
	return false
}

// lines returns how tasks ended, as far as that is known, each in a line after a newline.
func lines(tasks []spec.TaskResult) string {
	const most = 16
	var b strings.Builder
	n := 0
	for _, t := range tasks {
		if t.Exit == nil {
			continue
		}
		if n++; n <= most {
			exit, cause := exitColumns(t.Exit)
			fmt.Fprintf(&b, "\n%s: %s, %s", t.Name, exit, cause)
		}
	}
	if n > most {
		fmt.Fprintf(&b, "\nand %d more", n-most)
	}
	return b.String()
}

// short returns a return value fit for a line.
func short(v json.RawMessage) string {
	const most = 300
	text := spec.ShownValue(v)
	if len(text) > most {
		return shorten.Text(text, most) + " (all of it with --json)"
	}
	return text
}
