package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// HostTasks lists a run's tasks on one host.
type HostTasks struct {
	Host  string   `json:"host"`
	Tasks []string `json:"tasks"`
	// Slots is the host's number of slots, if its tasks exceed it.
	Slots int `json:"slots,omitempty"`
}

func (h HostTasks) List() string {
	return SomeOf(h.Tasks)
}

// LiveLine returns a status line with the run's state and its tasks' progress.
func LiveLine(id string, facts []outcome.Fact, started time.Time) string {
	parts := []string{id}
	for _, f := range facts {
		if f.Kind == outcome.FactState || f.Kind == outcome.FactProgress {
			parts = append(parts, f.Text)
		}
	}
	return strings.Join(append(parts, time.Since(started).Round(time.Second).String()), " · ")
}

// SomeOf lists the first of many names.
func SomeOf(names []string) string {
	const most = 8
	return shorten.List(names, most)
}

// ExitColumns returns the exit code, or the signal's name, and the cause.
func ExitColumns(e *spec.Exit) (exit, cause string) {
	if e == nil {
		return "-", "-"
	}
	if e.Signal != "" {
		return e.Signal, string(e.Cause)
	}
	return strconv.Itoa(e.ExitCode), string(e.Cause)
}

// unreachable is the error type in [Unreachable]'s results.
const unreachable = "Unreachable"

// Unreachable returns a result for a run when the server does not report its end.
func Unreachable(err error) *spec.RunResult {
	return &spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: unreachable, Message: err.Error(), ExitCode: cli.CodeOf(err)}
}

// taskLines returns a line for each task that is known to have ended.
func taskLines(tasks []spec.TaskResult) []string {
	const most = 16
	var lines []string
	n := 0
	for _, t := range tasks {
		if t.Exit == nil {
			continue
		}
		if n++; n <= most {
			exit, cause := ExitColumns(t.Exit)
			lines = append(lines, fmt.Sprintf("%s: %s, %s", t.Name, exit, cause))
		}
	}
	if n > most {
		lines = append(lines, fmt.Sprintf("and %d more", n-most))
	}
	return lines
}
