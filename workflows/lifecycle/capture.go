package lifecycle

import (
	"maps"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// captureFirst has the stacks of everything written down before it is stopped:
// nobody can say later where a process hung that is gone. The answer is
// [Captured], which the workflow gives in any case, and soon. The stop that comes
// after it has the cause why.
func (m *Machine) captureFirst(why spec.Cause) {
	m.phase, m.capturedFor = capturing, why
	m.do(Capture{Tasks: m.Live()})
}

func (m *Machine) captured(e Captured) {
	if m.capturedFor == "" {
		return
	}
	if m.stacks == nil {
		m.stacks = map[string]string{}
	}
	//workflowcheck:ignore the order of entries makes no difference
	maps.Copy(m.stacks, e.Files)
	if m.phase == capturing {
		m.stopAll(m.capturedFor)
	}
}

// captureStacks is an operator's request. No tasks means all.
func (m *Machine) captureStacks(e CaptureStacks) {
	tasks := m.Live()
	if len(e.Tasks) > 0 {
		tasks = namesOf(m.reached(e.Tasks))
	}
	m.do(Control{Op: ControlStacks, Tasks: tasks})
}

// whyStop is the cause that a stop gives: what has decided the run is the reason
// of the stop, also where somebody hastens it.
func (m *Machine) whyStop(why spec.Cause) spec.Cause {
	if m.phase == capturing {
		return m.capturedFor
	}
	return why
}
