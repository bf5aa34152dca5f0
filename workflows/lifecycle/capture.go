package lifecycle

import (
	"maps"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

const (
	// againSoon is the delay before the hosts repeat a capture that precedes a stop. It is short
	// enough not to delay the stop noticeably. againLater is the delay after a long silence.
	againSoon  = 300 * time.Millisecond
	againLater = 2 * time.Second
)

// captured is a stack capture's result.
type captured struct {
	Stacks  map[string]string   `json:"stacks,omitempty"`   // the files, by task
	Latest  *stacktree.Findings `json:"findings,omitempty"` // nil if nothing was captured
	FoundIn int                 `json:"found_in,omitempty"` // the generation
}

// Findings returns the last stack capture's findings, or nil.
func (c *captured) Findings() *stacktree.Findings { return c.Latest }

// keep records a generation's capture.
func (c *captured) keep(files map[string]string, found *stacktree.Findings, generation int) {
	if c.Stacks == nil {
		c.Stacks = map[string]string{}
	}
	//workflowcheck:ignore the order of entries makes no difference
	maps.Copy(c.Stacks, files)
	c.Latest, c.FoundIn = found, generation
}

// captureFirst captures all live tasks' stacks and then stops them with cause why, because a
// process's stacks are lost once it is gone. [Captured] always follows soon.
func (m *Machine) captureFirst(why spec.Cause) {
	m.phase, m.capturedFor = capturing, why
	m.do(Capture{Tasks: m.Live(), For: why, Again: againSoon})
}

func (e Captured) apply(m *Machine) {
	switch {
	case e.For == spec.CauseOrigin && m.lost.task != nil && m.phase == running:
	case e.For == spec.CauseSilence && m.silent.capturing:
	case e.For == "", e.For != m.capturedFor:
		return
	}
	m.keep(e.Files, m.explain(e), m.group.Generation)
	switch {
	case e.For == spec.CauseOrigin:
		m.suspect(e)
	case e.For == spec.CauseSilence:
		m.endSilence()
	case m.phase == capturing:
		m.stopAll(m.capturedFor)
	}
}

// explain returns the findings of captured stacks, or nil. The findings also cover tasks that were
// not captured, because other tasks may be waiting for a task that has ended.
func (l *taskList) explain(e Captured) *stacktree.Findings {
	if len(e.Stacks.Ranks()) == 0 {
		return nil
	}
	var tasks []stacktree.Task
	for _, t := range l.tasks {
		if !t.absent {
			tasks = append(tasks, stacktree.Task{Rank: t.Rank, Host: e.Hosts[t.Name()], Ended: t.Exit != nil})
		}
	}
	found := stacktree.Explain(stacktree.WithMissing(e.Stacks, tasks), stacktree.HostOf(tasks)).Short()
	found.Motion = e.Motion
	return &found
}

// whyStop returns a stop's cause. If stacks were captured for the stop, that is the capture's cause
// even if a later event hastened the stop. Otherwise it is why.
func (m *Machine) whyStop(why spec.Cause) spec.Cause {
	if m.phase == capturing {
		return m.capturedFor
	}
	return why
}
