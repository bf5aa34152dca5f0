package lifecycle

import (
	"maps"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

const (
	// againSoon is how long after the capture before a stop the hosts look once more: whoever waits for
	// the stop must not notice. againLater is that after a long silence.
	againSoon  = 300 * time.Millisecond
	againLater = 2 * time.Second
)

// captureFirst captures the stacks of all live tasks and then stops them with the cause
// why: once a process is gone nobody can tell where it hung. [Captured] answers, soon
// and in any case.
func (m *Machine) captureFirst(why spec.Cause) {
	m.phase, m.capturedFor = capturing, why
	m.do(Capture{Tasks: m.Live(), For: why, Again: againSoon})
}

func (e Captured) apply(m *Machine) {
	if e.For == "" || e.For != m.capturedFor && (e.For != spec.CauseSilence || !m.silent.capturing) {
		return
	}
	if m.stacks == nil {
		m.stacks = map[string]string{}
	}
	//workflowcheck:ignore the order of entries makes no difference
	maps.Copy(m.stacks, e.Files)
	m.findings = m.explain(e)
	m.foundIn = m.group.generation
	switch {
	case e.For == spec.CauseSilence:
		m.endSilence()
	case m.phase == capturing:
		m.stopAll(m.capturedFor)
	}
}

// explain returns what captured stacks tell, or nil if there are none. Tasks that were not
// captured are in it as well: those that have ended may be why others wait.
func (m *Machine) explain(e Captured) *stacktree.Findings {
	if len(e.Stacks.Ranks()) == 0 {
		return nil
	}
	var tasks []stacktree.Task
	for _, t := range m.tasks {
		if !t.absent {
			tasks = append(tasks, stacktree.Task{Rank: t.Rank, Host: e.Hosts[t.Name()], Ended: t.exit != nil})
		}
	}
	found := stacktree.Explain(stacktree.WithMissing(e.Stacks, tasks), stacktree.HostOf(tasks)).Short()
	found.Motion = e.Motion
	return &found
}

// whyStop returns the cause of a stop: that of the capture it follows, even if a later
// event hastened it, and why otherwise.
func (m *Machine) whyStop(why spec.Cause) spec.Cause {
	if m.phase == capturing {
		return m.capturedFor
	}
	return why
}
