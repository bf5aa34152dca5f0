package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// at returns when the process failed, as the end of a sentence.
func (f failure) at() string {
	when := f.exit.Ended
	if _, ok := f.errorAge(); ok || f.request != nil {
		when = f.errorTime()
	}
	if when.IsZero() {
		return ""
	}
	return ", at " + when.UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// span formats the time between two failures.
func span(nanos int64) string {
	d := time.Duration(nanos)
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// who returns the task, host, rank and pid of the process that failed.
func (j judgement) who(f failure) string {
	who := fmt.Sprintf("%s (rank %d", j.place(f.task), f.task.Rank)
	if f.exit.PID > 0 {
		who += fmt.Sprintf(", pid %d", f.exit.PID)
	}
	return who + ")"
}

// place returns the name of a task and its host.
func (j judgement) place(t *task) string {
	if host := j.hosts[t.Name()]; host != "" {
		return t.Name() + " on " + host
	}
	return t.Name()
}

// howEnded returns how a process ended, as the rest of a sentence about it.
func howEnded(f failure) string {
	e := f.exit
	switch {
	case f.held:
		return "held the others up, and was stopped for that (on_silence)"
	case f.stopped():
		return "was stopped on its way out (" + short(e) + ")"
	case e.StoppedByHost():
		return "was stopped by its host (" + exitText(e) + ")"
	case f.hostLost():
		return "was lost with its host, or with the supervisor there"
	case e.Cause == spec.CauseOOM:
		return "used all the memory that its limits allow, and was killed"
	case e.Cause == spec.CauseSilence:
		return "was silent, and was stopped for that (on_silence)"
	case e.Cause == spec.CauseLogQuota:
		return "was ended because the run had written more output there than its logs.quota"
	case e.ExitCode < 0:
		return "was ended by " + signalOf(e)
	case e.BadResult():
		return "exited with exit code 0, and left a bad result"
	case e.EndedInCall():
		return "exited with exit code 0 " + e.InCallText()
	}
	return fmt.Sprintf("exited with exit code %d", e.ExitCode)
}

// signalOf returns the signal that ended a process, by name if it has one.
func signalOf(e spec.Exit) string {
	if e.Signal != "" && e.Signal != spec.NoSignal {
		return e.Signal
	}
	return fmt.Sprintf("signal %d", -e.ExitCode)
}

func short(e spec.Exit) string {
	switch {
	case e.StoppedByHost():
		return "stopped by its host"
	case e.Cause == spec.CauseHostLost:
		return "lost"
	}
	return exitText(e)
}

// exitText returns how a process ended, whatever the cause.
func exitText(e spec.Exit) string {
	switch {
	case e.ExitCode < 0:
		return signalOf(e)
	case e.BadResult():
		return "bad result"
	case e.EndedInCall():
		return "exit code 0 in a call"
	default:
		return fmt.Sprintf("exit code %d", e.ExitCode)
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return shorten.Text(line, maxWords/2)
}

// writer collects lines.
type writer struct{ lines []string }

func (w *writer) line(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

func (w *writer) path(what, path string) {
	if path != "" {
		w.line("%s: %s", what, path)
	}
}

// quote writes the last lines of a program's words, indented. The first line of a
// reported error is left out: the headline has it.
func (w *writer) quote(words string, reported bool) {
	words = strings.TrimSpace(words)
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

func (w *writer) String() string { return strings.Join(w.lines, "\n") }
