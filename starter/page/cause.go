package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Cause is why a run ended.
type Cause struct {
	// Sentence states the cause.
	Sentence string
	// Task, Rank and Host identify the process that failed first. Task is empty if the cause is
	// not a process.
	Task string
	Rank int
	Host string
	PID  int
	At   time.Time
	// Words is the traceback, or the program's last words.
	Words string
	// FirstError is the first error in the output, if Words does not contain it.
	FirstError string
	// Details are further lines: other tasks' exits, restarts.
	Details []string
}

// causeOf returns why a run ended, or nil.
func causeOf(s *starter.Status) *Cause {
	if s.Open || s.Verdict == spec.VerdictSucceeded {
		return nil
	}
	r := s.Result
	if r == nil {
		return &Cause{Sentence: cmp.Or(s.Message, "It ended without a result.")}
	}
	c := &Cause{Sentence: r.Message}
	if f := r.FirstFailure; f != nil {
		c.Task, c.Rank, c.Host, c.PID, c.At, c.Words = f.Task, f.Rank, f.Host, f.PID, f.Failed(), f.Message
		if f.Printed != nil && !strings.Contains(f.Message, f.Printed.Line) {
			c.FirstError = f.Printed.String()
		}
	}
	if f := r.FirstError; f != nil && f.Printed != nil {
		c.FirstError = f.Task + ": " + f.Printed.String()
	}
	var stacks []string // they have their own part of the page
	if r.Stacks != nil {
		stacks = strings.Split(r.Stacks.String(), "\n")
		if c.Task == "" && len(r.Stacks.Outliers) > 0 {
			c.Sentence, c.Details = r.Stacks.Sentence, []string{r.Message}
		}
	}
	for _, line := range outcome.Lines(r, outcome.Options{Run: s.RunID, Zone: time.Local}) {
		// The root cause with its words is already shown, and the output is on the
		isShown := strings.HasPrefix(line, "Root cause: ") || strings.HasPrefix(line, "Logs: ") ||
			strings.Contains(c.Words, strings.TrimSpace(line))
		if !slices.Contains(stacks, line) && (!isShown || c.Task == "") {
			c.Details = append(c.Details, line)
		}
	}
	return c
}
