package lifecycle

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Notify asks to notify the webhook of the spec of an event.
type Notify struct {
	// Number counts the notices of the run, from 1.
	Number int
	// Result is the result of a run that has ended, or nil if it hangs.
	Result *spec.RunResult
	// Silent are the silent tasks, and Findings compares their stacks.
	Silent   []string
	Findings *stacktree.Findings
}

func (Notify) action() {}

// notify adds the action for an event. Hangs no longer lead to one after [spec.MaxNotices] of them: a
// run may hang and restart again and again.
func (m *Machine) notify(n Notify) {
	if m.spec.Notify == (spec.Notification{}) || n.Result == nil && m.notices >= spec.MaxNotices {
		return
	}
	m.notices++
	n.Number = m.notices
	n.Silent = slices.Clone(n.Silent)
	m.do(n)
}

// Refused returns the action for the end of a run whose spec a host has refused, which has no
// other action.
func (m *Machine) Refused(r *spec.RunResult) []Action {
	m.todo = nil
	m.notify(Notify{Result: r})
	return m.todo
}
