package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// GiveNotice gives the tasks notice that they will be stopped later, so that they can save their
// work. [Machine.Stopping] returns the answer.
type GiveNotice struct {
	From   spec.NoticeFrom
	Reason string
	At     time.Time
	Within time.Duration
	// Requeue reports whether the run is pending again afterwards.
	Requeue bool
}

// requeue is a run's state when it returns to the queue.
type requeue struct {
	// Notice is the current notice, or nil. after is the number of arrivals before the notice.
	Notice *spec.StopNotice `json:"notice,omitempty"`
	after  int
	// next is why the current generation returns to the queue, or empty if the next generation
	// keeps its hosts.
	next spec.RequeueOn
	// Pending reports whether the run is pending again.
	Pending bool `json:"pending,omitempty"`
	// Preemptions counts the returns after a notice. Counted counts the remaining returns, which
	// max_restarts limits.
	Preemptions int `json:"preemptions,omitempty"`
	Counted     int `json:"counted,omitempty"`
}

func (e GiveNotice) check(m *Machine) error {
	switch {
	case m.Ending():
		return errTooLate
	case e.From == spec.NoticeFromOperator && m.phase == placing:
		return m.errPlacing()
	case e.From == spec.NoticeFromOperator && m.phase == regrouping:
		return errAgain
	}
	return nil
}

// apply puts a notice in force. If there are two notices, the earlier deadline counts, and the run
// returns to the queue only if both request it. A notice between two generations applies to the
// next.
func (e GiveNotice) apply(m *Machine) {
	if m.requeue.Pending {
		return // the run does not hold any hosts
	}
	n := spec.StopNotice{From: e.From, Reason: shorten.Text(e.Reason, maxReason), Given: e.At, Deadline: e.At.Add(e.Within), Requeue: e.Requeue}
	old := m.requeue.Notice
	if old != nil {
		n.Requeue = n.Requeue && old.Requeue
		if !n.Deadline.Before(old.Deadline) {
			if n.Requeue == old.Requeue {
				return
			}
			requeue := n.Requeue
			n = *old
			n.Requeue = requeue
		}
	}
	if old == nil {
		m.requeue.after = m.arrivals
	}
	m.requeue.Notice = &n
	m.together.Seq++
	if m.phase != running {
		return
	}
	m.do(NotifyStopping{m.Stopping()})
	if signal := m.spec.NoticeSignal; signal != "" && old == nil {
		m.do(Detached{reach(spec.UpdateSignalTask, spec.SignalRequest{Signal: signal}, m.Live())})
	}
	left := n.Deadline.Sub(e.At)
	m.stopTimer(TimerNotice)
	if left <= 0 {
		m.noticeOver()
		return
	}
	m.startTimer(TimerNotice, left)
}

// noticeOver stops the tasks at the notice's deadline. If the run is already ending for another
// reason, its grace is over.
func (m *Machine) noticeOver() {
	switch {
	case m.decided == byTogether:
		m.togetherOver()
	case m.decided != undecided:
		m.stopAll(m.whyStop(spec.CauseCollateral))
	case m.phase == running:
		m.group.cause, m.group.root = spec.CausePreempted, nil
		m.stopForRegroup(spec.CausePreempted)
	}
}

// afterNotice reports whether a task ended because of the notice, by failing or being lost between
// the notice and the stop. That does not count as the run's failure.
func (m *Machine) afterNotice(t *task) bool {
	if m.requeue.Notice == nil || m.decided != undecided || t.Exit == nil || t.Arrived <= m.requeue.after {
		return false
	}
	switch {
	case t.Exit.Cause.ByItself():
		t.Exit.Cause = spec.CausePreempted
	case t.endedBy(spec.CauseHostLost):
		t.stopped = spec.CausePreempted // it was about to be stopped
	}
	return t.endedBy(spec.CausePreempted) || t.endedBy(spec.CauseHostLost)
}

// endAfterNotice decides what follows when all tasks have exited without being stopped. If the
// notice ended a task, the run is preempted. Otherwise it has finished in time.
func (m *Machine) endAfterNotice() {
	for _, t := range m.tasks {
		if m.phase == running && !t.absent && m.afterNotice(t) {
			m.group.cause, m.group.root = spec.CausePreempted, nil
			m.phase = regrouping
			m.nextGeneration()
			return
		}
	}
	m.release()
}

// mayRequeue reports whether the end of the tasks makes the run pending again.
func (m *Machine) mayRequeue(on spec.RequeueOn) bool {
	most := m.spec.MaxRestarts
	return m.phase == running && m.decided == undecided && m.spec.Requeues(on) && (most == nil || m.requeue.Counted < *most)
}

// requeueNow stops the remaining tasks with cause why, and makes the run pending again. root is a
// lost task, or nil if time is up.
func (m *Machine) requeueNow(on spec.RequeueOn, why spec.Cause, root *spec.Failure) {
	m.requeue.next = on
	m.requeue.Counted++
	m.group.cause, m.group.root = why, root
	if root != nil {
		m.group.cause = root.Cause
	}
	m.stopForRegroup(why)
}

// returns decides whether the stopped generation returns to the queue. ended reports whether the
// run instead finishes, as its notice requires.
func (m *Machine) returns() (ended bool) {
	q := &m.requeue
	n := q.Notice
	switch {
	case n == nil:
	case !n.Requeue:
		m.reason = n.String()
		m.decide(byNotice)
		m.endRegrouping()
		m.release()
		return true
	default:
		q.next = spec.RequeueOnPreemption
		q.Preemptions++
	}
	if q.next != "" {
		// The limits count from the start of the next generation.
		m.stopTimers()
		m.group.timed = false
		q.Pending = true
	}
	return false
}

// Notice returns the current notice, or nil.
func (m *Machine) Notice() *spec.StopNotice { return m.requeue.Notice }

// Pending reports whether the run has returned to the queue and waits for hosts.
func (m *Machine) Pending() bool { return m.requeue.Pending && m.phase == placing }

// Preemptions returns how often the run has returned to the queue after a notice.
func (a *account) Preemptions() int { return a.requeue.Preemptions }
