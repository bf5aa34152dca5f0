package lifecycle

import (
	"errors"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Notify asks to notify those whom the spec names of an event. The run does not wait for it.
type Notify struct {
	On spec.NotifyOn
	// Number counts the notices of the run, from 1.
	Number int
	// Result is the result of a run that has ended.
	Result *spec.RunResult
	// Silent are the silent tasks, and Findings compares their stacks.
	Silent   []string
	Findings *stacktree.Findings
	// Task is the restart of a task, and Group a restart of the group.
	Task  *spec.RestartedRequest
	Group *spec.GroupRestart
}

func (Notify) action() {}

var errNotNotified = errors.New("the run has no notification of that, or has sent enough of them")

// Restarted reports that a host has restarted a task.
type Restarted struct{ spec.RestartedRequest }

// check refuses an event that leads to nothing, so that it leaves nothing in the history.
func (e Restarted) check(m *Machine) error {
	switch {
	case m.phase != running || e.Generation != m.group.generation:
		return errNotNotified
	case !m.notifies(spec.NotifyRestart):
		return errNotNotified
	}
	return m.checkTasks([]string{e.Task}, nil)
}

func (e Restarted) apply(m *Machine) {
	m.notify(Notify{On: spec.NotifyRestart, Task: &e.RestartedRequest})
}

// notifies reports whether an event leads to a notice. Hangs and restarts no longer do after
// [spec.MaxNotices] of them: a run may fail and restart every few seconds.
func (m *Machine) notifies(on spec.NotifyOn) bool {
	return m.spec.Notifies(on) && (m.notices < spec.MaxNotices || on == spec.NotifyEnd || on == spec.NotifyFailure)
}

// notify adds the action for an event that leads to a notice.
func (m *Machine) notify(n Notify) {
	if !m.notifies(n.On) {
		return
	}
	m.notices++
	n.Number = m.notices
	n.Silent = slices.Clone(n.Silent)
	m.do(n)
}

// notifyEnd adds the action for the end of the run, which has ended with r.
func (m *Machine) notifyEnd(r *spec.RunResult) {
	on := spec.NotifyEnd
	if r.Verdict == spec.VerdictFailed || r.Verdict == spec.VerdictTimedOut {
		on = spec.NotifyFailure
	}
	m.notify(Notify{On: on, Result: r})
}

// Refused returns the action for the end of a run whose spec a host has refused, which has no
// other action. It returns nil if no notification wants it.
func (m *Machine) Refused(r *spec.RunResult) []Action {
	m.todo = nil
	m.notifyEnd(r)
	return m.todo
}
