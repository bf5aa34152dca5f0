package report

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/size"
)

// HostTasks are the tasks of a run on one host.
type HostTasks struct {
	Host  string   `json:"host"`
	Tasks []string `json:"tasks"`
	// Slots is the number of slots of the host, if it has more tasks than slots.
	Slots int `json:"slots,omitempty"`
}

func (h HostTasks) List() string {
	return SomeOf(h.Tasks)
}

// LiveLine returns the text of a status line.
func LiveLine(id, text string, started time.Time) string {
	return fmt.Sprintf("%s · %s · %s", id, text, time.Since(started).Round(time.Second))
}

// Counts returns the number of tasks in each state, such as "3 running, 1 ended".
func Counts(s *starter.Status) string {
	if s.Sweep != nil {
		return s.Sweep.Counts() + Remaining(s.Sweep)
	}
	return cmp.Or(starter.TallyOf(s.Doing()).String(), s.Word())
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

// WaitingLine returns the reason and the time for which a run waits.
func WaitingLine(w starter.Waiting, now time.Time) string {
	if w.After != "" {
		return "the end of run " + w.After
	}
	if w.Position > 0 {
		return fmt.Sprintf("%s (position %d in queue %s)", w.Refusal, w.Position, w.Queue)
	}
	place := "any host"
	if w.Host != "" {
		place = "host " + w.Host
	}
	if f := w.Fetching; f != nil {
		verb := "fetches"
		if f.Unpacking {
			verb = "unpacks"
		}
		return fmt.Sprintf("host %s, which %s what the run ships: %s of %s", f.Host, verb, size.Of(f.Bytes), size.Of(f.Size))
	}
	text := fmt.Sprintf("%s (queue %s): %s", place, w.Queue, cmp.Or(w.Refusal, "no host worker has answered yet"))
	if left := w.Until.Sub(now); !w.Until.IsZero() {
		text += fmt.Sprintf("; the run stops waiting in %s", cli.Roughly(max(0, left)))
	}
	return text
}

// unreachable is the error type of the results of [Unreachable].
const unreachable = "Unreachable"

// Unreachable returns the result of a run whose end the server does not report.
func Unreachable(err error) *spec.RunResult {
	return &spec.RunResult{Verdict: spec.VerdictFailed, ErrorType: unreachable, Message: err.Error(), ExitCode: cli.CodeOf(err)}
}

// Unkept returns a line about output that is in no file, or "" if all of it is.
func Unkept(tasks []spec.TaskResult) string {
	return UnkeptOf(tasks, func(t spec.TaskResult) (string, *spec.Exit) { return t.Name, t.Exit })
}

// UnkeptOf is [Unkept] for tasks of which end returns the name and the exit.
func UnkeptOf[T any](tasks []T, end func(T) (string, *spec.Exit)) string {
	var bytes int64
	var of []string
	for _, t := range tasks {
		if name, e := end(t); e != nil && e.DroppedBytes > 0 {
			bytes += e.DroppedBytes
			of = append(of, name)
		}
	}
	if len(of) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of the output of %s were dropped (logs.on_full), or could not be written to its file", size.Of(bytes), shorten.List(of, 8))
}

// taskLines returns a line for each task whose end is known.
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

// ProgressLine returns, for example, " · 40..55%, 3m10s left" for the running tasks that report
// their progress. The time left is the longest of all tasks, extrapolated from the run time of
// each process.
func ProgressLine(s *starter.Status, now time.Time) string {
	least, most := 101, -1
	var left time.Duration
	for _, t := range s.Tasks {
		p := t.Progress
		if t.State == spec.TaskEnded || p == nil || p.Total <= 0 {
			continue
		}
		least, most = min(least, percent(p)), max(most, percent(p))
		if took := now.Sub(t.Started); !t.Started.IsZero() && took > 0 && p.Current > 0 {
			rest := math.Max(0, p.Total-p.Current) / p.Current * took.Seconds()
			left = max(left, time.Duration(min(rest, math.MaxInt32)*float64(time.Second)))
		}
	}
	if most < 0 {
		return ""
	}
	text := fmt.Sprintf(" · %d%%", most)
	if least < most {
		text = fmt.Sprintf(" · %d..%d%%", least, most)
	}
	if left >= time.Second {
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}

// StoppingLine returns who asked the tasks to stop, why and when, and the time left.
func StoppingLine(s spec.Stopping, now time.Time) string {
	// The clock of the run may differ from ours.
	text := fmt.Sprintf("%s (%s ago", s, cli.Roughly(max(0, now.Sub(s.Asked))))
	switch left := s.Deadline.Sub(now); {
	case s.Deadline.IsZero():
		text += "; the run was ending already"
	case left > 0:
		text += fmt.Sprintf("; %s left", cli.Roughly(left))
	default:
		text += "; their time is over"
	}
	return text + ")"
}
