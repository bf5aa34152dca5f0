package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

const chiefType = "chief"

// isChief reports whether the end of the task ends the run. Only index 0 of the
// type is the chief, as in the seed.
func (m *Machine) isChief(t *task) bool {
	depends := m.spec.DependenceOnChief == nil || *m.spec.DependenceOnChief
	return depends && t.Type == chiefType && t.Index == 0
}

// chiefEnded gives the others the grace, all together, to end by themselves. It
// makes no difference how the chief ended: what arrives here is final, because
// with auto_restart the host has started a failed chief again for as long as
// the budget allows. Nor do further failures cut the grace short: it is the
// time the user gave the others to put their own end in order.
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
		// A failure from now on is final, and so is one whose next process has
		// not been started yet (MPR-20).
		m.do(Control{Op: ControlSeal, Tasks: live})
	}
	m.startTimer(TimerChiefGrace, grace)
}
