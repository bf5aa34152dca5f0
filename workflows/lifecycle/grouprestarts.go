package lifecycle

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// maxRestartsKept is how many restarts of the group are listed: the newest.
	maxRestartsKept = 10
	// maxRestartWords bounds the error of each, in bytes.
	maxRestartWords = 300
)

// keepRestart records that the group is restarted because of root; nil: an operator asked.
// first is the number of the first processes of the generation that begins.
func (m *Machine) keepRestart(first int, root *failure) {
	r := spec.GroupRestart{Generation: m.group.generation + 1, Attempt: first}
	if root == nil {
		root = m.group.root
	}
	if root != nil {
		r.Failure = m.describe(*root)
		r.Failure.Message = shorten.Text(r.Failure.Message, maxRestartWords)
	}
	g := &m.group
	kept := slices.Concat(g.restarts, []spec.GroupRestart{r}) // earlier answers have the former slice
	g.restarts = kept[max(0, len(kept)-maxRestartsKept):]
}

// GroupRestarts returns the last restarts of the group, the oldest first.
func (m *Machine) GroupRestarts() []spec.GroupRestart { return m.group.restarts }
