package lifecycle

import (
	"slices"
	"time"
)

// agenda holds the current step's actions and the running timers.
type agenda struct {
	todo   []Action
	timers []Timer
}

func (a *agenda) do(action Action) { a.todo = append(a.todo, action) }

func (a *agenda) startTimer(timer Timer, after time.Duration) {
	a.timers = append(a.timers, timer)
	a.do(StartTimer{Timer: timer, After: after})
}

func (a *agenda) stopTimer(timer Timer) {
	if a.forget(timer) {
		a.do(StopTimer{Timer: timer})
	}
}

// forget drops a timer, and reports whether it was running.
func (a *agenda) forget(timer Timer) bool {
	i := slices.Index(a.timers, timer)
	if i >= 0 {
		a.timers = slices.Delete(a.timers, i, i+1)
	}
	return i >= 0
}

func (a *agenda) stopTimers() {
	for _, timer := range a.timers {
		a.do(StopTimer{Timer: timer})
	}
	a.timers = nil
}
