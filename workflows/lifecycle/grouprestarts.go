package lifecycle

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// maxRestartsKept is how many restarts of the group are listed: the newest.
	maxRestartsKept = 10
	// maxReason bounds the error in the reason of a restart, in bytes.
	maxReason = 240
)

// keepRestart records that the group is restarted because of root; nil: an operator asked.
// first is the number of the first processes of the generation that begins.
func (g *group) keepRestart(first int, root *failure) {
	r := spec.GroupRestart{Generation: g.generation, Attempt: first, Reason: "an operator asked"}
	if root == nil {
		root = g.root
	}
	if root != nil {
		r.Task, r.Rank, r.Host = root.task.Name(), root.task.Rank, root.host
		r.ExitCode, r.Cause, r.LogDir, r.Time = root.exit.ExitCode, root.exit.Cause, root.exit.LogDir, root.when()
		r.Reason = root.reason()
	}
	kept := slices.Concat(g.restarts, []spec.GroupRestart{r}) // earlier answers have the former slice
	g.restarts = kept[max(0, len(kept)-maxRestartsKept):]
}

// reason returns in one line which task ended and how.
func (f failure) reason() string {
	who := f.task.Name()
	if f.host != "" {
		who += " on " + f.host
	}
	text := fmt.Sprintf("%s (rank %d) %s", who, f.task.Rank, howEnded(f))
	switch {
	case f.reported():
		text += ": " + shorten.Text(firstLine(f.exit.Message), maxReason)
	case f.exit.Printed != nil && !f.hostLost():
		text += ": " + f.exit.Printed.String()
	}
	return text
}

// GroupRestarts returns the last restarts of the group, the oldest first.
func (m *Machine) GroupRestarts() []spec.GroupRestart { return m.group.restarts }

// groupRestarts lists why the group was restarted before the generation that is reported.
func (m *Machine) groupRestarts(w *writer) {
	restarts := m.group.restarts
	if m.decided == byPlacement && len(restarts) > 0 {
		restarts = restarts[:len(restarts)-1] // the report has begun with it
	}
	if len(restarts) == 0 {
		return
	}
	if n := m.group.generation; n > maxRestartsKept {
		w.line("The last of %d restarts of the group:", n)
	} else {
		w.line("Restarts of the group:")
	}
	for _, r := range restarts {
		w.line("    %s", r)
	}
}
