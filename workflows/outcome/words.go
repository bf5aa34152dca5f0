package outcome

import (
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// before returns, as part of a sentence, how long before g's exit the error in f was printed.
func before(f, g spec.Failure) string {
	if f.Printed == nil || f.Printed.By.IsZero() || g.Ended.IsZero() {
		return ", before"
	}
	d := g.Ended.Sub(f.Printed.By)
	switch {
	case f.Host == g.Host && d > 0:
		return ", " + span(d) + " before"
	case f.Host == g.Host:
		return ", before"
	case d.Abs() < clockError:
		return ", according to their hosts' clocks at about the time that"
	case d < 0:
		return ", before (though not according to their hosts' clocks)"
	}
	return ", according to their hosts' clocks " + span(d) + " before"
}

// logs identifies a failed process's output.
func (w *writer) logs(f spec.Failure) {
	if w.o.Run != "" {
		if f.LogDir != "" {
			w.line("Logs: clusterrun logs %s %s", w.o.Run, f.Task)
		}
		return
	}
	w.path("Error file", f.ErrorFile)
	w.path("Logs", f.LogDir)
}

// quote writes the last lines of a program's message, indented. The first line of a reported
// error is omitted because it is in the sentence.
func (w *writer) quote(words string, reported bool) {
	words = strings.TrimRight(strings.TrimLeft(words, "\n"), " \t\r\n")
	if reported {
		_, words, _ = strings.Cut(words, "\n")
	}
	if words == "" {
		return
	}
	lines := strings.Split(words, "\n")
	first, left := len(lines), maxWords
	for first > 0 && len(lines)-first < maxWordLines && left > 0 {
		first--
		left -= len(lines[first])
	}
	if first > 0 {
		w.line("    …")
	}
	for _, l := range lines[first:] {
		w.line("    %s", shorten.Text(strings.TrimRight(l, " \t\r"), maxWords))
	}
}

// who returns a process's task, host, rank and pid.
func (w *writer) who(f spec.Failure) string {
	who := fmt.Sprintf("%s (rank %d", place(f.Task, f.Host), f.Rank)
	if f.PID > 0 {
		who += fmt.Sprintf(", pid %d", f.PID)
	}
	return who + ")"
}

// at returns, as the end of a sentence, when the process failed.
func (w *writer) at(f spec.Failure) string {
	when := f.Ended
	if _, ok := f.ErrorAge(); ok || f.Evidence == spec.EvidenceRequest {
		when = f.ErrorTime
	}
	if when.IsZero() {
		return ""
	}
	zone := w.o.Zone
	if zone == nil {
		zone = time.UTC
	}
	return ", at " + when.In(zone).Format("2006-01-02 15:04:05.000 MST")
}

// afterRestarts returns, as part of a sentence, how many restarts preceded the failed process.
func afterRestarts(f spec.Failure) string {
	if f.Restarts == 0 {
		return ""
	}
	text := ", after " + units.Count(f.Restarts, "restart", "restarts")
	if f.OfGroup {
		text += " of the group"
	}
	if f.UsedUp {
		text += ", all that max_restarts allows"
	}
	return text
}

// place returns a task's name and host.
func place(task, host string) string {
	if host != "" {
		return task + " on " + host
	}
	return task
}

// which returns the tasks with an exit that satisfies is.
func which(r *spec.RunResult, is func(*spec.TaskResult) bool) (all []*spec.TaskResult) {
	for i := range r.Tasks {
		if t := &r.Tasks[i]; t.Exit != nil && is(t) {
			all = append(all, t)
		}
	}
	return all
}

func placeOf(t *spec.TaskResult) string { return place(t.Name, t.Host) }

// rank returns a task's name and rank.
func rank(f spec.Failure) string { return fmt.Sprintf("%s (rank %d)", f.Task, f.Rank) }

// span formats the time between two failures.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
