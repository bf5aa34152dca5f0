package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Report prints how a run ended, root cause first, and returns an error that has the exit
// code and no text. JSON of it goes to stdout.
func Report(a *cli.App, id string, result *spec.RunResult, err error) error {
	result, err = ResultOf(result, err)
	if err != nil || result == nil {
		return err
	}
	printed := PrintResult(a, result)
	return cmp.Or(ReportEnd(a, id, result), printed)
}

// ResultOf returns the result of a run that has ended: one that was terminated, or is out of
// reach, has left none, and there is one all the same. The error is that of a run that has
// not ended.
func ResultOf(result *spec.RunResult, err error) (*spec.RunResult, error) {
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
	return Unreachable(err), nil
}

// ReportEnd says how a run ended, and returns an error that has the exit code and no text.
func ReportEnd(a *cli.App, id string, result *spec.RunResult) error {
	a.Say("%s", verdict(a, id, result))
	if result.Verdict == spec.VerdictSucceeded {
		return nil
	}
	copyErrorFile(a, result.FirstFailure)
	return &cli.ExitError{Code: max(result.ExitCode, 1)}
}

// PrintResult prints the result where JSON is wanted.
func PrintResult(a *cli.App, r *spec.RunResult) error {
	if !a.Global.JSON {
		return nil
	}
	if r.Tasks == nil { // nothing was started: null is no list to programs
		changed := *r
		changed.Tasks = []spec.TaskResult{}
		r = &changed
	}
	return a.PrintJSON(r)
}

// verdict returns the report in a few lines.
func verdict(a *cli.App, id string, r *spec.RunResult) string {
	var b strings.Builder
	switch r.Verdict {
	case spec.VerdictSucceeded:
		fmt.Fprintf(&b, "run %s %s%s", id, a.Color.Good(string(r.Verdict)), afterRestarts(r))
	default:
		fmt.Fprintf(&b, "run %s %s (exit code %d)", id, a.Color.Bad(string(r.Verdict)), r.ExitCode)
	}
	if r.Message != "" {
		b.WriteString("\n" + strings.TrimSpace(r.Message))
	}
	for _, line := range StoppedTogether(r) {
		b.WriteString("\n" + line)
	}
	if f := r.FirstFailure; f != nil && f.LogDir != "" && !names(r.Message, f.LogDir) {
		fmt.Fprintf(&b, "\nlogs of %s: %s", f.Task, f.LogDir)
	}
	for _, t := range r.Tasks {
		if line := Returned(t); line != "" {
			b.WriteString("\n" + line)
			if len(t.Value) == 0 {
				b.WriteString(" on " + t.Host)
			}
		}
	}
	b.WriteString(badEnds(r))
	return b.String()
}

// Returned says what a task has returned. Empty: nothing.
func Returned(t spec.TaskResult) string {
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
	return TaskLines(tasks)
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

// short returns a return value fit for a line.
func short(v json.RawMessage) string {
	const most = 300
	text := spec.ShownValue(v)
	if len(text) > most {
		return shorten.Text(text, most) + " (all of it with --json)"
	}
	return text
}
