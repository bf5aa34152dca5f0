package lifecycle

import (
	"maps"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// captureFirst captures the stacks of all live tasks and then stops them with the cause
// why: once a process is gone nobody can tell where it hung. [Captured] answers, soon
// and in any case.
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

// captureStacks captures the stacks of the tasks that an operator named, or of all.
func (m *Machine) captureStacks(e CaptureStacks) {
	tasks := m.Live()
	if len(e.Tasks) > 0 {
		tasks = namesOf(m.liveOf(e.Tasks))
	}
	m.do(Control{Op: ControlStacks, Tasks: tasks})
}

// whyStop returns the cause of a stop: that of the capture it follows, even if a later
// event hastened it, and why otherwise.
func (m *Machine) whyStop(why spec.Cause) spec.Cause {
	if m.phase == capturing {
		return m.capturedFor
	}
	return why
}
