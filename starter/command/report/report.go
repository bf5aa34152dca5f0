package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Report prints how a run ended, root cause first, and returns an error that contains the exit code
// but no text. With --json it also prints the result to stdout.
func Report(a *cli.App, id string, result *spec.RunResult, err error) error {
	result, err = ResultOf(result, err)
	if err != nil || result == nil {
		return err
	}
	printed := PrintResult(a, result)
	return cmp.Or(ReportEnd(a, id, result), printed)
}

// ResultOf returns a finished run's result. If the run was terminated or is unreachable, it returns
// a substitute. It returns an error if the run has not ended or does not exist.
func ResultOf(result *spec.RunResult, err error) (*spec.RunResult, error) {
	var terminated *starter.TerminatedError
	switch {
	case err == nil, result != nil && starter.IsError[*starter.Error](err):
		return result, nil
	case result != nil, starter.IsError[*starter.NotFoundError](err):
		return nil, err
	case errors.As(err, &terminated):
		return terminated.Result(), nil
	}
	return Unreachable(err), nil
}

// ReportEnd prints how a run ended, and returns an error that contains the exit code but no text.
func ReportEnd(a *cli.App, id string, result *spec.RunResult) error {
	a.Say("%s", verdict(a, id, result))
	if result.Verdict == spec.VerdictSucceeded {
		return nil
	}
	copyErrorFile(a, result.FirstFailure)
	return &cli.ExitError{Code: max(result.ExitCode, 1)}
}

// PrintResult prints the result as JSON if --json is given.
func PrintResult(a *cli.App, r *spec.RunResult) error {
	if !a.Global.JSON {
		return nil
	}
	return a.PrintJSON(withTasks(r))
}

// withTasks returns a result with a list of tasks even if no task was started, because programs
// expect a list instead of null.
func withTasks(r *spec.RunResult) *spec.RunResult {
	if r.Tasks != nil {
		return r
	}
	changed := *r
	changed.Tasks = []spec.TaskResult{}
	return &changed
}

// verdict returns the report in a few lines.
func verdict(a *cli.App, id string, r *spec.RunResult) string {
	mark := a.Color.Bad
	if r.Verdict == spec.VerdictSucceeded {
		mark = a.Color.Good
	}
	lines := append([]string{outcome.Headline(id, r, mark)}, outcome.Lines(r, outcome.Options{Run: id, Zone: time.Local})...)
	for _, t := range r.Tasks {
		if line := Returned(t); line != "" {
			if len(t.Value) == 0 {
				line += " on " + t.Host
			}
			lines = append(lines, line)
		}
	}
	if r.ErrorType == unreachable {
		lines = append(lines, taskLines(r.Tasks)...)
	}
	if line := outcome.Dropped(r); line != "" {
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Returned returns a line about a task's return value, or "" if there is none.
func Returned(t spec.TaskResult) string {
	switch {
	case len(t.Value) > 0:
		return fmt.Sprintf("%s returned %s", t.Name, short(t.Value))
	case t.Exit != nil && t.Exit.ValueFile != "":
		return fmt.Sprintf("the result of %s is in %s", t.Name, t.Exit.ValueFile)
	}
	return ""
}

// short returns a return value, truncated to fit on a line.
func short(v json.RawMessage) string {
	const most = 300
	text := spec.FormatValue(v)
	if len(text) > most {
		return shorten.Text(text, most) + " (all of it with --json)"
	}
	return text
}
