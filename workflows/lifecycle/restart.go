package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// atOnce is the shortest delay the server knows: 0 would mean "not given"
	// and bring the default.
	atOnce = time.Millisecond
	// firstBackoff comes before the second of quick restarts in a row, and
	// doubles up to longestBackoff.
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 10 * time.Second
	// settled is how long a process has to live to count as having worked.
	settled = time.Minute
)

// RestartPolicy decides whether a task whose process has ended gets another one,
// in restart scope "task". The host asks it: restarts cost the run no history.
type RestartPolicy struct {
	AutoRestart bool
	MaxRestarts *int // nil: no limit
}

// Attempt is one process of a task that has ended.
type Attempt struct {
	Cause spec.Cause
	// OperatorRestart: it was ended by restart-task.
	OperatorRestart bool
	Lived           time.Duration
}

// RestartHistory is what a [RestartPolicy] has to know about a task.
type RestartHistory struct {
	// Counted are the restarts so far that failures caused. Restarts after an
	// operator's hand or the loss of a host are not the program's fault.
	Counted int
	// Quick is how many processes in a row, up to the last, failed or were lost
	// before they had lived a minute.
	Quick int
	// Cause and OperatorRestart say how the last process ended.
	Cause           spec.Cause
	OperatorRestart bool
	// Sealed: the run is ending, nothing is started again.
	Sealed bool
}

// HistoryOf is the history of one launch of a task: start-task begins a new one,
// with a new budget. The attempts are in order; none at all means that there is
// nothing to start again.
func HistoryOf(attempts []Attempt) RestartHistory {
	var h RestartHistory
	for i, a := range attempts {
		h.Cause, h.OperatorRestart = a.Cause, a.OperatorRestart
		switch {
		case !a.failed() || a.Lived >= settled:
			h.Quick = 0
		default:
			h.Quick++
		}
		// The last one's restart is what is to be decided.
		if a.Cause == spec.CauseOrigin && i < len(attempts)-1 {
			h.Counted++
		}
	}
	return h
}

// Failures counts those of the launch, the last process's included.
func (h RestartHistory) Failures() int {
	if h.Cause == spec.CauseOrigin {
		return h.Counted + 1
	}
	return h.Counted
}

func (a Attempt) failed() bool {
	return a.Cause == spec.CauseOrigin || a.Cause == spec.CauseHostLost
}

// Next reports whether there is to be another process, and returns the delay before
// it, which is never 0. Exit 0 is final for every task, the chief included.
func (p RestartPolicy) Next(h RestartHistory) (delay time.Duration, again bool) {
	if h.Sealed {
		return 0, false
	}
	switch h.Cause {
	case spec.CauseOperator:
		// Terminated tasks come back too (MPR-22); restart-task needs no
		// auto_restart.
		if p.AutoRestart || h.OperatorRestart {
			return atOnce, true
		}
	case spec.CauseHostLost:
		if p.AutoRestart {
			return backoff(h.Quick), true
		}
	case spec.CauseOrigin:
		if p.AutoRestart && (p.MaxRestarts == nil || h.Counted < *p.MaxRestarts) {
			return backoff(h.Quick), true
		}
	}
	return 0, false
}

// backoff lets the first restart happen at once: most failures come alone.
func backoff(quick int) time.Duration {
	if quick <= 1 {
		return atOnce
	}
	delay := firstBackoff
	for range quick - 2 {
		if delay *= 2; delay >= longestBackoff {
			return longestBackoff
		}
	}
	return delay
}
