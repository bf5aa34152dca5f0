package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// failed reports whether the latest end of the task counts as a failure of the
// run. Only the latest does: a task that failed and was started again is as
// good as its last process (SEED-13).
func (m *Machine) failed(t *task) bool {
	if t.exit == nil || m.decided == byCancel && t.arrived > m.decidedAt {
		return false
	}
	switch t.exit.Cause {
	case spec.CauseCompleted, spec.CauseOperator:
		return false
	case spec.CauseCollateral, spec.CauseTimeout:
		// What we stopped has failed only if it had reported its error by then.
		return t.exit.Reported
	case spec.CauseHostLost:
		// What was told to stop anyway is not missed when its host goes.
		return t.stopped == ""
	default:
		return true
	}
}

// failure is one failure that counts.
type failure struct {
	task *task
	exit spec.Exit
	host string
	// wish is set where the task did not fail by the end of its process, but by the
	// error with which it asked all tasks to stop.
	wish *StopTogether
}

// reported: the program itself said what was wrong.
func (f failure) reported() bool { return f.exit.Reported && !f.hostLost() }

// stopped: it had reported its error, and we ended its process before that ended by
// itself.
func (f failure) stopped() bool { return f.reported() && f.exit.Cause != spec.CauseOrigin }

// hostLost: it is not the process that failed, but what it stood on.
func (f failure) hostLost() bool { return f.exit.Cause == spec.CauseHostLost }

// failures are all that count, in order of arrival.
func (m *Machine) failures(e Released) []failure {
	byArrival := make([]*task, m.arrivals)
	for _, t := range m.tasks {
		if t.arrived > 0 {
			byArrival[t.arrived-1] = t
		}
	}
	var all []failure
	wish, wished := m.wishFailure(e)
	at := m.together.after
	if wished && wish.task.arrived > 0 {
		at = min(at, wish.task.arrived-1) // its process had ended before anybody heard of the wish
	}
	for i, t := range byArrival {
		if wished && i == at {
			all = append(all, wish)
		}
		switch {
		case t == nil: // the end of an earlier launch, which is forgotten
		case wished && t == wish.task: // the wish says more than the end does
		case m.failed(t):
			all = append(all, failure{task: t, exit: *t.exit, host: e.Hosts[t.Name()]})
		case m.decided == byTimeout || m.decided == byMaxRunTime:
			if exit, ok := t.lastReport(e.Exits[t.Name()]); ok {
				all = append(all, failure{task: t, exit: exit, host: e.Hosts[t.Name()]})
			}
		}
	}
	if wished && at == len(byArrival) {
		all = append(all, wish)
	}
	if g := m.group.before; len(all) == 0 && g != nil && g.reported() && (m.decided == byTimeout || m.decided == byMaxRunTime) {
		// A group that fails again and again until the timeout, in the same way.
		before := *g
		before.host = e.Hosts[g.task.Name()]
		all = append(all, before)
	}
	return all
}

// lastReport is the error that the task's last finished process reported, where
// time ran out on the process after it. A task that fails again and again until
// the timeout says more with its own error than the timeout does (MPR-19).
func (t *task) lastReport(exits []spec.Exit) (spec.Exit, bool) {
	if t.exit != nil && t.exit.Cause != spec.CauseTimeout {
		return spec.Exit{}, false
	}
	for i := len(exits) - 1; i >= 0 && exits[i].Restart >= t.first; i-- {
		exit := t.relabel(exits[i])
		if exit.Cause == spec.CauseTimeout {
			continue
		}
		return exit, exit.Cause == spec.CauseOrigin && exit.Reported
	}
	return spec.Exit{}, false
}

// earliest is the root cause among failures that are in order of arrival. The
// history has the order between hosts, whose clocks nobody compares. Within the
// host that was first, its own monotonic clock knows better than the order in
// which activities happened to return; the order of the spec breaks ties.
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

// before compares two failures on one host.
func (f *failure) before(g *failure) bool {
	a, b := f.instant(), g.instant()
	switch {
	case f.host == "" || a == 0 || b == 0:
		return false
	case a != b:
		return a < b
	default:
		return f.task.Rank < g.task.Rank
	}
}

// stampSecond is how coarse the timestamp of an error file may be.
const stampSecond = time.Second

// instant is when the failure happened, in nanoseconds on the clock of its host
// since boot; 0: not known. It is the time of the error where the program wrote
// one down: a process that raised first may die last, as one does that waits for
// its peers on its way out (SEED-85).
func (f *failure) instant() int64 {
	if before, ok := f.errorAge(); ok && f.exit.BootNanos > before.Nanoseconds() {
		return f.exit.BootNanos - before.Nanoseconds()
	}
	return f.exit.BootNanos
}

// errorAge is how long before the end of the process it wrote its error down, by
// the wall clock of its host. A time that cannot be is none: one after the end of
// the process, or before its start.
func (f *failure) errorAge() (age time.Duration, ok bool) {
	e := &f.exit
	if e.ErrorTime.IsZero() || e.Ended.IsZero() {
		return 0, false
	}
	age = e.Ended.Sub(e.ErrorTime)
	if !e.Started.IsZero() {
		lived := e.Ended.Sub(e.Started)
		if age > lived+stampSecond {
			return 0, false
		}
		age = min(age, lived)
	}
	return age, age >= 0
}

// describe is the failure as the result has it.
func (f failure) describe() *spec.ProcessFailure {
	message := f.exit.Message
	switch {
	case f.exit.Cause == spec.CauseHostLost && message == "":
		message = f.lostText()
	case f.exit.Cause == spec.CauseOrigin && !f.reported():
		message = spec.FailureMessage(f.exit)
	}
	return &spec.ProcessFailure{
		Task: f.task.Name(), Host: f.host, Rank: f.task.Rank, PID: f.exit.PID,
		ExitCode: f.exit.ExitCode, Signal: f.exit.Signal, Cause: f.exit.Cause,
		ErrorFile: f.exit.ErrorFile, Message: message, Reported: f.exit.Reported,
		LogDir: f.exit.LogDir, Timestamp: f.when(),
	}
}

// when is the time of the failure by the wall clock of its host: that of the
// error, where the program wrote one down.
func (f failure) when() time.Time {
	if f.exit.ErrorTime.IsZero() {
		return f.exit.Ended
	}
	return f.exit.ErrorTime
}

func (f failure) lostText() string {
	switch {
	case f.exit.StoppedByHost():
		return spec.HostStoppedText(f.task.Name(), f.host)
	case f.host == "":
		return "Subprocess " + f.task.Name() + " was lost with its host."
	}
	return spec.HostLostText(f.task.Name(), f.host)
}
