package lifecycle

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Notify sends an event to the spec's webhook.
type Notify struct {
	// Number counts the run's notices, from 1.
	Number int
	// Result is a finished run's result, or nil if the run hangs.
	Result *spec.RunResult
	// Silent are the silent tasks, and Findings compares their stacks.
	Silent   []string
	Findings *stacktree.Findings
}

func (Notify) action() {}

// notify adds the action for an event. After [spec.MaxNotices] notices, hangs are no longer
// reported, because a run may hang and restart repeatedly.
func (m *Machine) notify(n Notify) {
	if m.spec.Notify == (spec.Notification{}) || n.Result == nil && m.notices >= spec.MaxNotices {
		return
	}
	m.notices++
	n.Number = m.notices
	n.Silent = slices.Clone(n.Silent)
	m.do(n)
}

// Refused returns the action for the end of a run with a spec that a host has refused. No other
// actions follow.
func (m *Machine) Refused(r *spec.RunResult) []Action {
	m.todo = nil
	m.notify(Notify{Result: r})
	return m.todo
}
