package lifecycle

import (
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Machine holds one run's state. It is not safe for concurrent use; workflow code is not
// concurrent.
type Machine struct {
	account
	agenda
	phase  phase
	silent silentTasks
	// capturedFor is the cause for the stop that waits for a capture.
	capturedFor spec.Cause
	// notices counts the run's notices.
	notices int
}

// phase is the run's phase; see the diagram in doc.go.
type phase int

const (
	placing phase = iota
	running
	regrouping // all tasks are being stopped, to be launched again
	capturing  // captures all tasks' stacks before they are stopped
	stopping   // all live tasks are being stopped
	releasing
	ended
)

// decision records why a run finishes.
type decision = spec.EndedBy

const (
	undecided    decision = "" // nothing was stopped
	byChief               = spec.EndedByChief
	byFailure             = spec.EndedByFailure
	byTimeout             = spec.EndedByTimeout
	byMaxRunTime          = spec.EndedByMaxRunTime
	byTogether            = spec.EndedByTogether
	byCancel              = spec.EndedByCancel
	byPlacement           = spec.EndedByPlacement
	byAfter               = spec.EndedByAfter
	byNotice              = spec.EndedByNotice
)

// New returns a run's machine. The spec must be validated and contain its defaults. tasks are the
// tasks that it lists, in rank order.
func New(s *spec.RunSpec, tasks []spec.Task) *Machine {
	return &Machine{account: account{spec: s, taskList: listOf(tasks)}}
}

// Step applies an event and returns the actions to carry out, in order. It ignores late or
// repeated events, and requests that [Machine.Check] refuses.
func (m *Machine) Step(e Event) []Action {
	m.todo = nil
	if m.Check(e) != nil {
		return nil
	}
	e.apply(m)
	switch m.phase {
	case running, capturing, stopping:
		if !m.anyLive() {
			m.endAfterNotice()
		}
	case regrouping:
		if !m.anyLive() {
			m.nextGeneration()
		}
	}
	return m.todo
}

// apply launches all of a generation's tasks. The run's time may already have been used up in an
// earlier execution of the workflow.
func (e Begin) apply(m *Machine) {
	if m.phase != placing {
		return
	}
	m.phase = running
	m.setSize(e.Tasks)
	elapsed := e.Elapsed
	// A limit of 0 expires before any process can start, so nothing is launched. Any limit may
	// expire between two generations.
	if d := m.spec.Timeout; d != nil && d.Std() <= elapsed {
		m.decide(byTimeout)
	}
	if d := m.spec.MaxRunTime; d != nil && d.Std() <= elapsed {
		m.decide(byMaxRunTime)
	}
	if m.decided != undecided {
		return
	}
	m.requeue.Pending = false
	if m.requeue.Notice != nil {
		m.noticeOver() // the notice arrived while the generation was being placed
		return
	}
	for _, t := range m.tasks {
		if !t.absent {
			m.launch(t)
		}
	}
	m.startTimers(elapsed)
}

func (e PlacementFailed) apply(m *Machine) {
	if m.phase != placing {
		return
	}
	if m.decided == undecided {
		m.reason = e.Message
	}
	if e.Skipped {
		m.decide(byAfter)
	} else {
		m.decide(byPlacement)
	}
	m.release()
}

// launch starts or restarts a task. Of its earlier launches, only the exits are kept.
func (m *Machine) launch(t *task) {
	t.keepEnd()
	if t.Exit != nil {
		t.First = max(t.First, t.Exit.Restart+1)
	}
	t.Launch++
	t.Live = true
	t.resetEnd()
	m.do(Launch{Task: t.Task, Generation: m.group.Generation, Launch: t.Launch, Added: t.added})
}

func (e TaskEnded) apply(m *Machine) {
	t := m.named[e.Task]
	if t == nil || !t.Live || e.Launch != t.Launch || e.Generation != m.group.Generation {
		return
	}
	m.end(t, e)
	switch {
	case m.phase != running:
		// The task was stopped, or is about to be.
	case t.endedBy(spec.CauseTimeout):
		// The host, which also enforces max_run_time, detected the timeout first.
		m.timeUp(byMaxRunTime)
	case t.endedBy(spec.CauseOperator) && !t.Asked:
		// The stop was not requested. The host's owner shut the host down.
		m.cancel(t.Name() + " was stopped on its host")
	case m.lost.task != nil:
		m.endedMeanwhile(t)
	case m.afterNotice(t):
		// The exit is judged when all tasks have ended.
	case m.decided == byTogether:
		// All tasks are to exit on their own. A failure does not shorten the grace, and is judged
		// now only if the stop is cleared.
	case e.Await && m.awaits(t):
		m.await(t)
	default:
		m.judgeEnd(t)
	}
}

// judgeEnd decides what a task's exit means for the run, provided that the task was not stopped.
func (m *Machine) judgeEnd(t *task) {
	switch {
	case m.failed(t) && m.mayRegroup(t.Exit.Cause):
		m.regroup(t)
	case m.failed(t) && t.endedBy(spec.CauseHostLost) && m.mayRequeue(spec.RequeueOnHostLost):
		m.requeueNow(spec.RequeueOnHostLost, spec.CauseCollateral, new(t.failure("")))
	case m.isChief(t):
		m.chiefEnded()
	case m.decided == undecided && m.failed(t) && m.spec.OnFailure != spec.OnFailureContinue:
		m.decide(byFailure)
		m.stopAll(spec.CauseCollateral)
	}
}

// stopAll stops all live tasks for good. It is called at most once per run.
func (m *Machine) stopAll(why spec.Cause) {
	m.phase = stopping
	m.stopTimers()
	m.stopLive(why)
}

func (m *Machine) stopLive(why spec.Cause) {
	m.stopTimer(TimerErrorGrace)
	m.lost.task = nil
	live := m.Live()
	if len(live) == 0 {
		return
	}
	for _, t := range m.tasks {
		if t.Live {
			t.stopped = why
		}
	}
	m.do(Stop{Tasks: live, Why: why})
}

func (m *Machine) cancel(reason string) {
	switch m.phase {
	case placing:
		m.reason = reason
		m.decide(byCancel)
		m.release()
	case running, capturing:
		if m.decided == undecided {
			m.reason = reason
		}
		m.decide(byCancel)
		m.stopAll(m.whyStop(spec.CauseOperator))
	case regrouping:
		m.reason = reason
		m.decide(byCancel)
		m.endRegrouping()
	}
}

func (m *Machine) release() {
	m.stopTimers()
	m.phase = releasing
	m.do(Release{})
}

func (e Released) apply(m *Machine) {
	if m.phase != releasing {
		return
	}
	m.phase = ended
	f := m.finish(e)
	m.do(f)
	m.notify(Notify{Result: &f.Result})
}
