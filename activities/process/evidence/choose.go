package evidence

import (
	"slices"
	"time"
)

const (
	// survivedAfter and survivedLines are how long after an error, or how many lines after it, a
	// program must still print output to have survived it. A program that is exiting may still
	// print while it cleans up.
	survivedAfter = 30 * time.Second
	survivedLines = 1000
	// together is the maximum time between errors that count as one. In a victim, the first error
	// is about the lost peer, and more errors follow from it.
	together = 5 * time.Second
)

// Dated is a finding that was printed between two times, which are zero if unknown.
type Dated struct {
	Finding
	After, By time.Time
}

// Choose returns the error that has ended or is about to end the process, or nil. found holds the
// findings of all its streams, and lastOutput is the time of its last output. An undated error
// counts as recent.
func Choose(found []Dated, lastOutput time.Time) *Dated {
	var alive []Dated
	for _, f := range found {
		if f.Rest <= survivedLines && (f.By.IsZero() || lastOutput.Sub(f.By) <= survivedAfter) {
			alive = append(alive, f)
		}
	}
	slices.SortStableFunc(alive, func(a, b Dated) int { return a.By.Compare(b.By) })
	chosen := first(alive, func(f Dated) bool { return !f.Survived })
	if chosen == nil {
		chosen = first(alive, func(f Dated) bool { return f.Kind != kindPeer })
	}
	if chosen == nil {
		return first(alive, func(Dated) bool { return true })
	}
	for _, f := range alive {
		if f.LostPeer && !f.By.After(chosen.By) && chosen.By.Sub(f.By) <= together && f.Start <= chosen.Start {
			chosen.LostPeer = true
		}
	}
	return chosen
}

// first returns the first finding of the last group that fits.
func first(all []Dated, fits func(Dated) bool) *Dated {
	var chosen *Dated
	for i := range slices.Backward(all) {
		f := all[i]
		switch {
		case !fits(f):
		case chosen != nil && chosen.By.Sub(f.By) > together:
			return chosen
		default:
			chosen = &f
		}
	}
	return chosen
}
