package lifecycle

import "time"

// Liveness holds the signs that a process is working.
type Liveness struct {
	// Output is the size of its output, and CPU its processor time.
	Output int64
	CPU    time.Duration
	// Progress is its last reported progress.
	Progress string
	// Idle reports whether the process waits for calls to serve.
	Idle bool
}

const (
	// idleShare is the inverse of the share of a processor that an idle process may use, because
	// its threads occasionally wake up and find nothing to do.
	idleShare = 100
	// longestLook limits how much silence counts between two checks. A host that was suspended, or
	// did not check for other reasons, does not know what it missed.
	longestLook = time.Minute
)

// Silence measures how long a process has shown no sign of work. The zero value is ready to use.
type Silence struct {
	looked time.Time
	signs  Liveness
	silent time.Duration
	// longest is the longest finished silence.
	longest time.Duration
}

// Longest returns the longest finished silence.
func (s *Silence) Longest() time.Duration { return s.longest }

// Look records the signs seen at the given time, and returns how long the process has been silent.
// The time must be from a clock that stops while the host is suspended.
func (s *Silence) Look(at time.Time, signs Liveness) time.Duration {
	elapsed, before := at.Sub(s.looked), s.signs
	if !s.looked.IsZero() && elapsed <= 0 {
		return s.silent // a repeated check
	}
	first := s.looked.IsZero()
	s.looked, s.signs = at, signs
	if first || signs.Idle || signs.Output != before.Output || signs.Progress != before.Progress || signs.CPU-before.CPU > elapsed/idleShare {
		s.longest = max(s.longest, s.silent)
		s.silent = 0
	} else {
		s.silent += min(elapsed, longestLook)
	}
	return s.silent
}
