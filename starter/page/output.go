package page

import (
	"cmp"
	"time"
)

// Output is part of a run's output, merged by time.
type Output struct {
	Lines []OutputLine
	// Filter selects lines.
	Filter OutputFilter
	// Cut describes the omitted part of the output. It is empty if everything is shown.
	Cut string
	// Missing describes output that cannot be read, with the reasons, one line each.
	Missing []string
	// Pending reports whether the output is still unknown.
	Pending bool
	// LogURL is the address of the whole output as plain text, or "".
	LogURL string
}

// OutputFilter selects lines of output. The server receives it as the query parameters ranks,
// search and stderr.
type OutputFilter struct {
	// Ranks is a list such as 0-3,8. If empty, it selects all ranks.
	Ranks  string
	Search string
	Stderr bool
}

// OutputLine is a line from one rank, or an identical line from several ranks.
type OutputLine struct {
	// At is approximately when the line was written, or zero if unknown.
	At time.Time
	// Task and Rank identify the first rank that wrote the line. Ranks lists all of them, such
	// as 0-47.
	Task  string
	Rank  int
	Ranks string
	// Count is how many lines it stands for.
	Count  int
	Stderr bool
	Text   string
	// Tone is Culprit or Muted for lines of such tasks, and otherwise Active.
	Tone Tone
}

// Who returns a line's task, or the ranks if several wrote it.
func (l *OutputLine) Who() string {
	if l.Count > 1 {
		return "ranks " + l.Ranks
	}
	return cmp.Or(l.Task, l.Ranks)
}
