package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

const chiefType = "chief"

// isChief reports whether the task's exit finishes the run. Only index 0 of the type chief is a
// chief, as in TensorFlow's MultiProcessRunner.
func (a *account) isChief(t *task) bool {
	depends := a.spec.DependenceOnChief == nil || *a.spec.DependenceOnChief
	return depends && t.Type == chiefType && t.Index == 0
}

// chiefEnded gives the remaining tasks chief_grace to exit even if the chief failed. With
// auto_restart, the host has already restarted a failed chief as often as the budget allowed.
// Further failures do not shorten the grace, because the user has granted the tasks this time to
// finish.
func (m *Machine) chiefEnded() {
	m.decide(byChief)
	live := m.Live()
	if len(live) == 0 {
		return
	}
	grace := m.spec.ChiefGrace.Std()
	if grace <= 0 {
		m.stopAll(spec.CauseCollateral)
		return
	}
	if m.spec.RestartsTasks() {
		// From now on every failure is final, even one whose restart is still pending.
		m.do(SealTasks{Tasks: live})
	}
	m.startTimer(TimerChiefGrace, grace)
}
