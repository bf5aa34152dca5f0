package evidence

import (
	"slices"
	"time"
)

const (
	// survivedAfter is the time of output, and survivedLines the number of its lines, after an
	// error that show that the program has survived it. A program that is about to end still
	// prints output of its cleanup.
	survivedAfter = 30 * time.Second
	survivedLines = 1000
	// together is the time within which errors count as one: the error of a victim begins with
	// the loss of its peer, and others follow from it.
	together = 5 * time.Second
)

// A Dated finding has the times between which it was printed. They are zero if not known.
type Dated struct {
	Finding
	After, By time.Time
}

// Choose returns the error that ended the process, or is about to. It returns nil if there is
// none. found holds the findings of all of its streams, and lastOutput is the time of its last
// output. An error without a time of its own counts as recent.
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
