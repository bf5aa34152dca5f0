package rules

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Bounds of one [Decide], which becomes one event of the history.
const (
	decideRanges = 10_000
	decideBytes  = closure.MaxBatchBytes
)

// decisions are the outcomes that the queue has decided since the last [Queue.Actions].
// text is why closures were cancelled; empty is TensorFlow's text.
type decisions struct {
	cancelled [][2]uint64
	text      string
	other     []closure.Outcome
	// before are earlier ones with another text.
	before []Action
}

func (d *decisions) cancel(first, last uint64) {
	d.cancelled = append(d.cancelled, [2]uint64{first, last})
}

func (d *decisions) end(o closure.Outcome) { d.other = append(d.other, o) }

// because sets the text of cancellations from now on.
func (d *decisions) because(text string) {
	d.before = d.take()
	d.text = text
}

func (d *decisions) empty() bool {
	return len(d.cancelled) == 0 && len(d.other) == 0 && len(d.before) == 0
}

// take returns everything that was decided, in pieces that fit into an event.
func (d *decisions) take() []Action {
	actions := d.before
	for piece := range slices.Chunk(closure.JoinRanges(d.cancelled), decideRanges) {
		actions = append(actions, Decide{closure.DecidedOutcomes{Cancelled: piece, Text: d.text}})
	}
	for first, size := 0, 0; first < len(d.other); size = 0 {
		last := first
		for last < len(d.other) && (last == first || size+outcomeBytes(d.other[last]) <= decideBytes) {
			size += outcomeBytes(d.other[last])
			last++
		}
		actions = append(actions, Decide{closure.DecidedOutcomes{Other: d.other[first:last]}})
		first = last
	}
	*d = decisions{text: d.text}
	return actions
}

func outcomeBytes(o closure.Outcome) int {
	const names = 200
	return names + len(o.Error.Message) + len(o.Error.Traceback)
}
