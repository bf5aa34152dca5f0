package retention

import (
	"cmp"
	"slices"
	"time"
)

// Answer is the server's answer about a run.
type Answer string

// The values of [Answer]. Silent means that the server was not asked, does not answer, or
// does not know the run, which may be on another server.
const (
	Silent Answer = ""
	Open   Answer = "open"
	Closed Answer = "closed"
)

// Facts is the known state of a run.
type Facts struct {
	// Held reports whether a state directory on this host contains the run's plan, or a journal of
	// the run that is not released.
	Held bool
	// Idle reports whether no host worker uses that state directory, so that none of the run's
	// processes is alive on this host.
	Idle   bool
	Server Answer
	// Noted reports whether the note records the run's end.
	Noted bool
	// Gone reports whether its host worker's state directory is gone.
	Gone  bool
	Ended time.Time
	Bytes int64
}

// Reason is why a run is kept, or empty if it may be removed.
type Reason string

// The reasons, in order of precedence.
const (
	Lives     Reason = "lives"
	Unsettled Reason = "may still be running; there is no proof that it has ended"
	Wanted    Reason = "is not old enough"
)

// Alive returns why a run must never be removed, or empty if it is over.
func (f Facts) Alive() Reason {
	switch {
	case f.Server == Open, f.Held && (!f.Idle || f.Server != Closed):
		return Lives
	case f.Server == Closed, f.Noted, f.Gone:
		return ""
	}
	return Unsettled
}

// Rule selects which of the runs that are over are removed.
type Rule struct {
	// Before is the time before which a run must have ended to be old. If it is zero, no run is
	// old.
	Before time.Time
	// MaxBytes is the limit for all runs together; 0 means no limit. The runs that ended first are
	// removed first.
	MaxBytes int64
}

// Choose returns, for each run, why it is kept, or an empty reason if it is to be removed.
func (r Rule) Choose(runs []Facts) []Reason {
	reasons := make([]Reason, len(runs))
	var total int64
	var oldest []int
	for i, f := range runs {
		reasons[i] = r.judge(f)
		if reasons[i] == "" {
			continue
		}
		total += f.Bytes
		if reasons[i] == Wanted {
			oldest = append(oldest, i)
		}
	}
	if r.MaxBytes <= 0 {
		return reasons
	}
	slices.SortStableFunc(oldest, func(a, b int) int {
		return cmp.Or(runs[a].Ended.Compare(runs[b].Ended), cmp.Compare(a, b))
	})
	for _, i := range oldest {
		if total <= r.MaxBytes {
			break
		}
		if runs[i].Bytes > 0 {
			reasons[i] = ""
			total -= runs[i].Bytes
		}
	}
	return reasons
}

func (r Rule) judge(f Facts) Reason {
	switch alive := f.Alive(); {
	case alive != "":
		return alive
	case f.Ended.Before(r.Before):
		return ""
	}
	return Wanted
}
