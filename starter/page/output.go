package page

import (
	"cmp"
	"time"
)

// Output is a part of the output of a run, merged by time.
type Output struct {
	Lines []OutputLine
	// Filter is the selection of lines.
	Filter OutputFilter
	// Cut says which part of the output is left out. It is empty if all is shown.
	Cut string
	// Missing says which output cannot be read, and why; a line each.
	Missing []string
	// Pending reports whether the output is not known yet.
	Pending bool
	// LogURL is the address of all output as text, or "".
	LogURL string
}

// OutputFilter selects lines of output. The server gets it as the query parameters ranks,
// search and stderr.
type OutputFilter struct {
	// Ranks are as in 0-3,8; all if empty.
	Ranks  string
	Search string
	Stderr bool
}

// OutputLine is a line of one rank, or a line that some ranks wrote alike.
type OutputLine struct {
	// At is about the time at which it was written; zero if unknown.
	At time.Time
	// Task and Rank are of the first rank that wrote it. Ranks has all, as in 0-47.
	Task  string
	Rank  int
	Ranks string
	// Count is the number of lines that it stands for.
	Count  int
	Stderr bool
	Text   string
	// Tone is Culprit or Muted for lines of such tasks, and otherwise Active.
	Tone Tone
}

// Who returns the task of a line, or the ranks of several.
func (l *OutputLine) Who() string {
	if l.Count > 1 {
		return "ranks " + l.Ranks
	}
	return cmp.Or(l.Task, l.Ranks)
}
