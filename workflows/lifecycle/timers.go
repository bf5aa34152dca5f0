package lifecycle

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (m *Machine) timerFired(timer Timer) {
	if m.phase > capturing || !slices.Contains(m.timers, timer) {
		return
	}
	m.timers = slices.DeleteFunc(m.timers, func(t Timer) bool { return t == timer })
	switch timer {
	case TimerChiefGrace:
		m.stopAll(spec.CauseCollateral)
	case TimerTimeout:
		if m.phase == running && m.anyLive() {
			m.decide(byTimeout)
			m.noteStragglers()
			m.captureFirst(spec.CauseTimeout)
			return
		}
		m.timeUp(byTimeout)
	case TimerMaxRunTime:
		m.timeUp(byMaxRunTime)
	case TimerTogether:
		m.togetherOver()
	}
}

func (m *Machine) timeUp(d decision) {
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

func (m *Machine) startTimer(timer Timer, after time.Duration) {
	m.timers = append(m.timers, timer)
	m.do(StartTimer{Timer: timer, After: after})
}

func (m *Machine) stopTimer(timer Timer) {
	if i := slices.Index(m.timers, timer); i >= 0 {
		m.timers = slices.Delete(m.timers, i, i+1)
		m.do(StopTimer{Timer: timer})
	}
}

func (m *Machine) stopTimers() {
	for _, timer := range m.timers {
		m.do(StopTimer{Timer: timer})
	}
	m.timers = nil
}
