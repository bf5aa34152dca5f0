package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (m *Machine) timerFired(timer Timer) {
	if m.phase > capturing || !m.forget(timer) {
		return
	}
	switch timer {
	case TimerChiefGrace:
		m.stopAll(spec.CauseCollateral)
	case TimerNotice:
		m.noticeOver()
	case TimerTimeout:
		if m.mayRequeue(spec.RequeueOnTimeout) {
			m.requeueNow(spec.RequeueOnTimeout, spec.CauseTimeout, nil)
			return
		}
		if m.phase == running && m.anyLive() {
			m.decide(byTimeout)
			m.noteStragglers()
			m.captureFirst(spec.CauseTimeout)
			return
		}
		m.timeUp(byTimeout)
	case TimerMaxRunTime:
		m.timeUp(byMaxRunTime)
	case TimerErrorGrace:
		m.stopAwaiting()
	case TimerTogether:
		m.togetherOver()
	}
}

func (m *Machine) timeUp(d decision) {
	if m.mayRequeue(spec.RequeueOnTimeout) {
		m.requeueNow(spec.RequeueOnTimeout, spec.CauseTimeout, nil)
		return
	}
	m.decide(d)
	switch m.phase {
	case placing: // a later generation, which will not be launched
		m.stopTimers()
		m.do(StopPlacing{})
	case regrouping:
		m.endRegrouping()
	default:
		m.noteStragglers()
		m.stopAll(m.whyStop(spec.CauseTimeout))
	}
}

// startTimers starts the timers that span all generations. The timer of a limit that has already
// passed fires immediately.
func (m *Machine) startTimers(elapsed time.Duration) {
	if m.group.timed {
		return
	}
	m.group.timed = true
	if d := m.spec.Timeout; d != nil {
		m.startTimer(TimerTimeout, max(d.Std()-elapsed, atOnce))
	}
	if d := m.spec.MaxRunTime; d != nil {
		m.startTimer(TimerMaxRunTime, max(d.Std()-elapsed, atOnce))
	}
}
