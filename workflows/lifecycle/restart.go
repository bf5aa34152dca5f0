package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// atOnce is the shortest delay of a timer: the server interprets 0 as "not given".
	atOnce = time.Millisecond
	// firstBackoff delays the second quick restart in a row. It doubles up to longestBackoff.
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 10 * time.Second
	// A failure does not count as quick if the process was at least stableAfter old.
	stableAfter = time.Minute
)

// RestartPolicy decides in restart scope "task" whether a process that exits is replaced. The host
// evaluates it, so that restarts do not add to the run's history.
type RestartPolicy struct {
	AutoRestart bool
	MaxRestarts *int // nil means no limit
	SameErrors  *int // see give_up_on_same_error; nil means no limit
}

// Attempt is one exited process of a task.
type Attempt struct {
	Cause spec.Cause
	// OperatorRestart reports whether restart-task stopped the process.
	OperatorRestart bool
	Lived           time.Duration
}

// RestartHistory is a [RestartPolicy]'s input.
type RestartHistory struct {
	// Counted is the number of restarts due to failures. Restarts by an operator or after a host's
	// loss do not count.
	Counted int
	// Quick is the number of consecutive processes, up to the last, that failed or were lost
	// within a minute.
	Quick int
	// Cause and OperatorRestart describe why the last process exited.
	Cause           spec.Cause
	OperatorRestart bool
	// Same counts consecutive failures with the same error.
	Same SameError
	// Sealed reports whether the run is finishing, so that nothing is restarted.
	Sealed bool
}

// HistoryOf returns a launch's history from its attempts, in order. start-task starts a new launch,
// with a new budget. If there are no attempts, nothing is restarted.
func HistoryOf(attempts []Attempt) RestartHistory {
	var h RestartHistory
	for i, a := range attempts {
		h.Cause, h.OperatorRestart = a.Cause, a.OperatorRestart
		switch {
		case !a.failed() || a.Lived >= stableAfter:
			h.Quick = 0
		default:
			h.Quick++
		}
		// Whether the last one will be restarted is not yet decided.
		if a.Cause.ByItself() && i < len(attempts)-1 {
			h.Counted++
		}
	}
	return h
}

// Failures returns the launch's number of failures, including the last process's.
func (h RestartHistory) Failures() int {
	if h.Cause.ByItself() {
		return h.Counted + 1
	}
	return h.Counted
}

func (a Attempt) failed() bool {
	return a.Cause.ByItself() || a.Cause == spec.CauseHostLost
}

// Hopeless reports whether another restart would not help. [RestartPolicy.Next] does not check
// this, because a process's error is read from its output.
func (p RestartPolicy) Hopeless(h RestartHistory) bool {
	return p.AutoRestart && h.Cause.ByItself() && h.Same.hopeless(p.SameErrors)
}

// Next reports whether the task is restarted, and after what delay, which is never 0. An exit with
// code 0 or because of too much output is final for every task, including the chief.
func (p RestartPolicy) Next(h RestartHistory) (delay time.Duration, again bool) {
	if h.Sealed {
		return 0, false
	}
	switch h.Cause {
	case spec.CauseOperator:
		// auto_restart also restarts terminated tasks; restart-task works without auto_restart.
		if p.AutoRestart || h.OperatorRestart {
			return atOnce, true
		}
	case spec.CauseHostLost:
		if p.AutoRestart {
			return backoff(h.Quick), true
		}
	case spec.CauseOrigin, spec.CauseOOM, spec.CauseSilence:
		if p.AutoRestart && (p.MaxRestarts == nil || h.Counted < *p.MaxRestarts) {
			return backoff(h.Quick), true
		}
	}
	return 0, false
}

// backoff returns a restart's delay. The first is immediate, because most failures are isolated.
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
