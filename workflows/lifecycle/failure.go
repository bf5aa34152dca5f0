package lifecycle

import (
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// failed reports whether the task's latest end is a failure of the run. Only the latest
// counts: a task that failed and was restarted is as good as its last process.
func (a *account) failed(t *task) bool {
	if t.exit == nil || a.decided == byCancel && t.arrived > a.decidedAt {
		return false
	}
	switch t.exit.Cause {
	case spec.CauseCompleted, spec.CauseOperator:
		return false
	case spec.CauseCollateral, spec.CauseTimeout, spec.CausePreempted:
		// A process that was stopped has failed only if it had reported its error before.
		return t.exit.Reported
	case spec.CauseHostLost:
		// A task that was being stopped anyway does not fail with its host.
		return t.stopped == ""
	default:
		return true
	}
}

// failure is a failure of the run.
type failure struct {
	task *task
	exit spec.Exit
	host string
	// evidence is the reason why it counts as the root cause, if not its end.
	evidence spec.Evidence
}

// reported reports whether the program reported an error.
func (f failure) reported() bool { return f.exit.Reported && !f.hostLost() }

// stopped reports whether the program had reported or shown its error and was stopped before it
// ended by itself.
func (f failure) stopped() bool {
	return (f.reported() || f.evidence == spec.EvidencePrinted || f.evidence == spec.EvidenceStacks) && !f.exit.Cause.ByItself()
}

// hostLost reports whether the process was lost with its host.
func (f failure) hostLost() bool { return f.exit.Cause == spec.CauseHostLost }

// failures returns all failures of the run, in order of arrival.
func (a *account) failures(e Released) []failure {
	byArrival := make([]*task, a.arrivals)
	for _, t := range a.tasks {
		if t.arrived > 0 {
			byArrival[t.arrived-1] = t
		}
	}
	var all []failure
	request, requested := a.requestFailure(e)
	at := a.together.after
	if requested && request.task.arrived > 0 {
		at = min(at, request.task.arrived-1) // its process ended before the request arrived
	}
	for i, t := range byArrival {
		if requested && i == at {
			all = append(all, request)
		}
		switch {
		case t == nil: // the end of an earlier launch, which no longer counts
		case requested && t == request.task: // the request says more than the end does
		case a.failed(t):
			all = append(all, failure{task: t, exit: *t.exit, host: e.Hosts[t.Name()]})
		case a.decided == byTimeout || a.decided == byMaxRunTime:
			if exit, ok := t.lastReport(e.Exits[t.Name()]); ok {
				all = append(all, failure{task: t, exit: exit, host: e.Hosts[t.Name()]})
			}
		}
	}
	if requested && at == len(byArrival) {
		all = append(all, request)
	}
	if g := a.group.before; len(all) == 0 && g != nil && g.reported() && (a.decided == byTimeout || a.decided == byMaxRunTime) {
		// The group failed again and again in the same way until time ran out.
		before := *g
		before.host = e.Hosts[g.task.Name()]
		all = append(all, before)
	}
	return all
}

// lastReport returns the error that the task's last finished process reported, if time ran out
// on the process after it: if a task fails again and again until the timeout, its own error is
// more informative than the timeout.
func (t *task) lastReport(exits []spec.Exit) (spec.Exit, bool) {
	if t.exit != nil && t.exit.Cause != spec.CauseTimeout {
		return spec.Exit{}, false
	}
	for i := len(exits) - 1; i >= 0 && exits[i].Restart >= t.first; i-- {
		exit := t.relabel(exits[i])
		if exit.Cause == spec.CauseTimeout {
			continue
		}
		return exit, exit.Cause.ByItself() && exit.Reported
	}
	return spec.Exit{}, false
}

// rootOf returns the root cause: the earliest failure that may be the reason for the end of the
// run.
func (a *account) rootOf(all []failure) *failure {
	var final []failure
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

// final reports whether a failure was one that restarts do not mend. If a failure has stopped
// the others, a task that was waiting for its restart then, or would have been given one, has
// failed before but did not end the run.
func (a *account) final(f failure) bool {
	if a.decided != byFailure || !a.spec.RestartsTasks() || f.evidence == spec.EvidenceRequest || !f.exit.Cause.ByItself() {
		return true
	}
	return f.task.arrived <= a.decidedAt && !f.task.waiting || a.usedUp(f)
}

// usedUp reports whether the task of a failure had no restart left.
func (a *account) usedUp(f failure) bool {
	most := a.spec.MaxRestarts
	return a.spec.RestartsTasks() && most != nil && f.exit.Restart-f.task.first >= *most
}

// earliest returns the earliest of failures in order of arrival. Between hosts the order of the
// history decides, since their clocks cannot be compared. On the host of the first failure its
// monotonic clock decides, which is more exact than the order in which activities returned;
// rank breaks ties.
func earliest(all []failure) *failure {
	if len(all) == 0 {
		return nil
	}
	first := &all[0]
	for i := range all[1:] {
		if f := &all[i+1]; f.host == first.host && f.before(first) {
			first = f
		}
	}
	return first
}

// before reports whether f happened before g. Both must be on one host.
func (f *failure) before(g *failure) bool {
	a, b := f.exit.FailedNanos(), g.exit.FailedNanos()
	switch {
	case f.host == "" || a == 0 || b == 0:
		return false
	case a != b:
		return a < b
	default:
		return f.task.Rank < g.task.Rank
	}
}

// describe returns the failure in the form of the result.
func (a *account) describe(f failure) *spec.Failure {
	d := &spec.Failure{Task: f.task.Name(), Rank: f.task.Rank, Host: f.host, Exit: f.exit, Evidence: f.evidence}
	switch n := f.exit.Restart - f.task.first; {
	case n > 0:
		d.Restarts, d.UsedUp = n, a.usedUp(f)
	case a.group.generation > 0 && f.exit.Restart >= a.group.first:
		most := a.spec.MaxRestarts
		d.Restarts, d.OfGroup, d.UsedUp = a.group.generation, true, most != nil && a.group.counted >= *most
	}
	return d
}
