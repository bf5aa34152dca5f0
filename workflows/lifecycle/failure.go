package lifecycle

import (
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// failed reports whether the task's latest end counts as a failure. Only the latest end counts,
// because a task that failed and was restarted is judged by its last process.
func (a *account) failed(t *task) bool {
	if t.Exit == nil || a.decided == byCancel && t.Arrived > a.decidedAt {
		return false
	}
	switch t.Exit.Cause {
	case spec.CauseCompleted, spec.CauseOperator:
		return false
	case spec.CauseCollateral, spec.CauseTimeout, spec.CausePreempted:
		// A process that was stopped has failed only if it had reported an error before the stop.
		return t.Exit.Reported
	case spec.CauseHostLost:
		// A task that was being stopped anyway does not fail with its host.
		return t.stopped == ""
	default:
		return true
	}
}

// failure returns an ended task's failure.
func (t *task) failure(host string) spec.Failure {
	return spec.Failure{Task: t.Name(), Rank: t.Rank, Host: host, Exit: *t.Exit}
}

// reported reports whether the program reported an error, and was not lost with its host.
func reported(f spec.Failure) bool { return f.Reported && f.Cause != spec.CauseHostLost }

// failures returns all of the run's failures, in order of arrival.
func (a *account) failures(e Released) []spec.Failure {
	byArrival := make([]*task, a.arrivals)
	for _, t := range a.tasks {
		if t.Arrived > 0 {
			byArrival[t.Arrived-1] = t
		}
	}
	var all []spec.Failure
	request, requested := a.requestFailure(e)
	at := a.together.after
	if requested && a.arrival(request) > 0 {
		at = min(at, a.arrival(request)-1) // the task's process exited before the request arrived
	}
	for i, t := range byArrival {
		if requested && i == at {
			all = append(all, request)
		}
		switch {
		case t == nil: // the exit belongs to an earlier launch and no longer counts
		case requested && t.Name() == request.Task: // the request is more informative than the exit
		case a.failed(t):
			all = append(all, t.failure(e.Hosts[t.Name()]))
		case a.decided == byTimeout || a.decided == byMaxRunTime:
			if exit, ok := t.lastReport(e.Exits[t.Name()]); ok {
				all = append(all, spec.Failure{Task: t.Name(), Rank: t.Rank, Host: e.Hosts[t.Name()], Exit: exit})
			}
		}
	}
	if requested && at == len(byArrival) {
		all = append(all, request)
	}
	if g := a.group.Before; len(all) == 0 && g != nil && reported(*g) && (a.decided == byTimeout || a.decided == byMaxRunTime) {
		// The group failed repeatedly in the same way until time ran out.
		before := *g
		before.Host = e.Hosts[g.Task]
		all = append(all, before)
	}
	return all
}

// lastReport returns the error that the task's previous process reported if its last process ran
// out of time. If a task fails repeatedly until the timeout, its error is more informative than the
// timeout.
func (t *task) lastReport(exits []spec.Exit) (spec.Exit, bool) {
	if t.Exit != nil && t.Exit.Cause != spec.CauseTimeout {
		return spec.Exit{}, false
	}
	for i := len(exits) - 1; i >= 0 && exits[i].Restart >= t.First; i-- {
		exit := t.relabel(exits[i])
		if exit.Cause == spec.CauseTimeout {
			continue
		}
		return exit, exit.Cause.ByItself() && exit.Reported
	}
	return spec.Exit{}, false
}

// rootOf returns the root cause: the earliest failure that may explain the end of the run.
func (a *account) rootOf(all []spec.Failure) *spec.Failure {
	var final []spec.Failure
	for _, f := range all {
		if a.final(f) {
			final = append(final, f)
		}
	}
	if len(final) > 0 {
		return earliest(final)
	}
	return earliest(all)
}

// final reports whether a failure was not to be followed by a restart. If a failure has stopped the
// remaining tasks, a task that was waiting for its restart or would have been restarted failed
// earlier, but did not end the run.
func (a *account) final(f spec.Failure) bool {
	if a.decided != byFailure || !a.spec.RestartsTasks() || f.Evidence == spec.EvidenceRequest || !f.Cause.ByItself() {
		return true
	}
	return a.arrival(f) <= a.decidedAt && !a.named[f.Task].waiting || a.usedUp(f) || f.SameErrors > 0
}

// usedUp reports whether the failed task had used all its restarts.
func (a *account) usedUp(f spec.Failure) bool {
	most := a.spec.MaxRestarts
	return a.spec.RestartsTasks() && most != nil && f.Restart-a.named[f.Task].First >= *most
}

// earliest returns the failure that arrived first. The order in the history decides between hosts,
// since their clocks cannot be compared. Among the failures on the first one's host, the host's
// monotonic clock decides, because it is more exact than the order in which activities returned.
// Rank breaks ties.
func earliest(all []spec.Failure) *spec.Failure {
	if len(all) == 0 {
		return nil
	}
	first := &all[0]
	for i := range all[1:] {
		if f := &all[i+1]; f.Host == first.Host && before(f, first) {
			first = f
		}
	}
	return first
}

// before reports whether f happened before g. Both must be on the same host.
func before(f, g *spec.Failure) bool {
	a, b := f.FailedNanos(), g.FailedNanos()
	switch {
	case f.Host == "" || a == 0 || b == 0:
		return false
	case a != b:
		return a < b
	default:
		return f.Rank < g.Rank
	}
}

// arrival returns the position of a failed task's end among all ends, from 1, or 0 if the task has
// not ended.
func (a *account) arrival(f spec.Failure) int { return a.named[f.Task].Arrived }

// describe returns the failure together with the number of restarts before it.
func (a *account) describe(f spec.Failure) *spec.Failure {
	switch n := f.Restart - a.named[f.Task].First; {
	case n > 0:
		f.Restarts, f.UsedUp = n, a.usedUp(f)
	case a.group.Generation > 0 && f.Restart >= a.group.First:
		most := a.spec.MaxRestarts
		f.Restarts, f.OfGroup, f.UsedUp = a.group.Generation, true, !a.spec.RestartsTasks() && most != nil && a.group.Counted >= *most
	}
	return &f
}
