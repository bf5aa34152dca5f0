package lifecycle

import (
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// silentTasks is the state of on_silence.
type silentTasks struct {
	// tasks lists the tasks that their hosts reported as silent. capturing reports whether all
	// tasks' stacks are being captured before anything else is done.
	tasks     []string
	capturing bool
}

// apply captures all tasks' stacks, because a silent task may be waiting for a task that its host
// does not consider silent.
func (e Silent) apply(m *Machine) {
	if m.phase != running || m.spec.OnSilence == "" || e.Generation != m.group.Generation {
		return
	}
	tasks := namesOf(m.liveOf(e.Tasks))
	if len(tasks) == 0 {
		return
	}
	s := &m.silent
	s.tasks = append(s.tasks, tasks...)
	if !s.capturing {
		s.capturing = true
		m.do(Capture{Tasks: m.Live(), For: spec.CauseSilence, Again: againLater})
	}
}

// endSilence carries out on_silence after the stacks are captured.
func (m *Machine) endSilence() {
	s := &m.silent
	tasks := namesOf(m.liveOf(s.tasks))
	s.capturing, s.tasks = false, nil
	if m.phase != running || len(tasks) == 0 {
		return
	}
	m.notify(Notify{Silent: tasks, Findings: m.Latest})
	if m.spec.OnSilence == spec.OnSilenceStop {
		m.do(StopSilentTasks{Tasks: tasks})
	}
}

// byStacks returns the failure of the task that a silent root was waiting for, or nil if the stacks
// do not show it. That task is the first outlier that failed and was not lost with its host. The
// run may have stopped it because its peers failed.
func (a *account) byStacks(root *spec.Failure, hostOf func(*task) string) *spec.Failure {
	if !a.foundSilence(root) {
		return nil
	}
	for _, t := range a.tasks {
		if !t.absent && a.Latest.Outliers.Has(t.Rank) && t.Exit != nil && !t.Exit.OK() && !t.endedBy(spec.CauseHostLost) {
			f := t.failure(hostOf(t))
			f.Evidence = spec.EvidenceStacks
			return &f
		}
	}
	return nil
}

// foundSilence reports whether f is a failure for silence with stacks that were captured before.
func (a *account) foundSilence(f *spec.Failure) bool {
	return f != nil && f.Evidence != spec.EvidenceRequest && f.Cause == spec.CauseSilence && a.Latest != nil && a.FoundIn == a.group.Generation
}
