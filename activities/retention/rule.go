package retention

import (
	"cmp"
	"slices"
	"time"
)

// Answer is what the server says of a run.
type Answer string

// Silent: it was not asked, does not answer, or does not know the run, which may be on
// another server.
const (
	Silent Answer = ""
	Open   Answer = "open"
	Closed Answer = "closed"
)

// Facts are what is known of a run.
type Facts struct {
	// Held reports whether a state directory here has a plan of it, or a journal that was
	// not released.
	Held bool
	// Idle reports whether no host worker uses that state directory: then nothing of the run
	// is alive here.
	Idle   bool
	Server Answer
	// Noted reports whether its note says that it has ended.
	Noted bool
	// Gone reports whether the state directory of its host worker is gone.
	Gone bool
	// Kept reports whether somebody wants it to be kept.
	Kept bool
	// Succeeded reports whether it is known to have ended well or by a cancellation.
	Succeeded bool
	Ended     time.Time
	Bytes     int64
}

// Reason is why a run stays. Empty: it goes.
type Reason string

// The reasons, in the order in which they count.
const (
	Lives     Reason = "lives"
	Unsettled Reason = "may live: nobody says that it has ended"
	Kept      Reason = "is kept"
	Failed    Reason = "has failed"
	Wanted    Reason = "is not old enough"
)

// Alive returns why a run may not be removed, whoever wants that. Empty: it is over.
func (f Facts) Alive() Reason {
	switch {
	case f.Server == Open, f.Held && (!f.Idle || f.Server != Closed):
		return Lives
	case f.Server == Closed, f.Noted, f.Gone:
		return ""
	}
	return Unsettled
}

// Rule says which runs that are over go.
type Rule struct {
	// Before is when those have ended that are old. Zero: none is.
	Before time.Time
	// MostBytes is what all runs together may have; 0: no bound. Those that ended first go
	// first.
	MostBytes int64
	// KeepFailed reports whether those stay that have failed.
	KeepFailed bool
}

// Choose returns for each run why it stays.
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
	if r.MostBytes <= 0 {
		return reasons
	}
	slices.SortStableFunc(oldest, func(a, b int) int {
		return cmp.Or(runs[a].Ended.Compare(runs[b].Ended), cmp.Compare(a, b))
	})
	for _, i := range oldest {
		if total <= r.MostBytes {
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
	case f.Kept:
		return Kept
	case r.KeepFailed && !f.Succeeded:
		return Failed
	case f.Ended.Before(r.Before):
		return ""
	}
	return Wanted
}
