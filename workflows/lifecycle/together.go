package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// together is what a run knows of stopping together: a task or an operator asked
// that all tasks end, each by itself (TensorFlow's Coordinator, with tasks in
// place of its threads).
type together struct {
	// seq counts the stops and the clears.
	seq int
	// wish is the first of the stop that stands; nil: none does.
	wish *StopTogether
	// after is the number of arrivals before it.
	after    int
	deadline time.Time
	// made are the latest wishes that stopped the run, also those that were cleared:
	// the same wish again is no other.
	made []Wish
	// stragglers are the tasks that still ran when the time for the stop was over,
	// in rank order.
	stragglers []string
}

// Wish names a wish. An operator's has no task.
type Wish struct {
	Task       string `json:"task,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Key        string `json:"key"`
}

// maxWishes bounds the wishes that are remembered. Who makes one again does so soon.
const maxWishes = 200

func (e StopTogether) name() Wish { return Wish{e.Task, e.Generation, e.Key} }

var (
	errStopping   = errors.New("the tasks of the run are stopping together; nothing is started any more unless the stop is cleared")
	errTooLate    = errors.New("the run is ending, and its tasks are being stopped")
	errGraceOver  = errors.New("the grace of the stop is over, and the tasks that were left are being stopped; it cannot be cleared any more")
	errOtherwise  = errors.New("the run is ending for another reason too; the stop cannot be cleared any more")
	errNotStopped = errors.New("the run is ending, and not because its tasks were asked to stop together; there is nothing to clear")
)

// Stopping is how the run stands, for those who ask.
func (m *Machine) Stopping() spec.Stopping {
	g := &m.together
	s := spec.Stopping{Seq: g.seq}
	if g.wish == nil {
		return s
	}
	s.Stop, s.By, s.Reason, s.Error = true, g.wish.Task, g.wish.Reason, g.wish.Error
	s.Clean, s.Asked, s.Deadline = g.clean(m.spec), g.wish.At, g.deadline
	return s
}

// clean: the stop came with an error that is no failure (SEED-62).
func (g *together) clean(s *spec.RunSpec) bool {
	return g.wish != nil && g.wish.Error != nil && s.StopTogether.Clean(g.wish.Error.Kind)
}

// err is the error that the stop which stands came with, where that is a failure.
func (g *together) err(s *spec.RunSpec) *spec.TogetherError {
	if g.wish == nil || g.clean(s) {
		return nil
	}
	return g.wish.Error
}

func (m *Machine) checkTogether(e StopTogether) error {
	g := &m.together
	if err := m.checkAsker(e.Task, e.Generation); err != nil {
		return err
	}
	switch {
	case g.wish != nil, e.Key != "" && slices.Contains(g.made, e.name()):
		return nil // it is answered with how the run stands
	case m.phase == placing:
		return m.errPlacing()
	case m.phase == regrouping:
		return errAgain
	case m.phase != running:
		return errTooLate
	}
	return nil
}

func (m *Machine) checkClear(e ClearStop) error {
	if err := m.checkAsker(e.Task, e.Generation); err != nil {
		return err
	}
	stands := m.together.wish != nil
	switch {
	case m.phase == placing:
		return m.errPlacing()
	case m.phase == regrouping:
		return errAgain
	case !stands && m.Ending():
		return errNotStopped
	case stands && m.decided != byTogether:
		return errOtherwise
	case stands && m.phase != running:
		return errGraceOver
	}
	return nil
}

// checkAsker refuses a task that is none of this run, or of an older generation.
func (m *Machine) checkAsker(task string, generation int) error {
	switch {
	case task == "":
		return nil
	case m.named[task] == nil:
		return m.errUnknown(task)
	case generation != m.group.generation:
		return fmt.Errorf("generation %d of the group is over; this is generation %d", generation, m.group.generation)
	}
	return nil
}

// stopTogether takes the first wish; later ones change nothing, nor do their
// errors (SEED-63). In the chief's grace it changes neither the verdict nor the
// time, but every task learns of it.
func (m *Machine) stopTogether(e StopTogether) {
	g := &m.together
	if g.wish != nil || e.Key != "" && slices.Contains(g.made, e.name()) {
		return
	}
	e.TogetherRequest = e.Bounded()
	g.seq++
	g.wish, g.after, g.deadline = &e, m.arrivals, time.Time{}
	if e.Key != "" {
		g.made = append(g.made[max(0, len(g.made)+1-maxWishes):len(g.made):len(g.made)], e.name())
	}
	if m.decided != undecided {
		m.do(Tell{m.Stopping()})
		return
	}
	m.decide(byTogether)
	grace := m.spec.StopTogether.Grace.Std()
	g.deadline = e.At.Add(grace)
	m.do(Tell{m.Stopping()})
	if grace <= 0 {
		m.togetherOver()
		return
	}
	m.startTimer(TimerTogether, grace)
}

// togetherOver ends the grace: who still runs is a straggler. Where that is a
// failure, what the stragglers are doing is written down before they are stopped,
// unless another limit has had that begun.
func (m *Machine) togetherOver() {
	m.noteStragglers()
	if m.spec.StopTogether.IgnoreLiveTasks || m.phase == capturing {
		m.stopAll(m.whyStop(spec.CauseCollateral))
		return
	}
	m.captureFirst(spec.CauseCollateral)
}

// noteStragglers keeps who still ran when time ended a stop: its own grace, or a
// limit of the run that came first. A task whose host was first to notice that
// limit is one of them.
func (m *Machine) noteStragglers() {
	g := &m.together
	if m.decided != byTogether || g.stragglers != nil {
		return
	}
	for _, t := range m.tasks {
		if t.live || t.endedBy(spec.CauseTimeout) {
			g.stragglers = append(g.stragglers, t.Name())
		}
	}
}

// late: there are stragglers, and that is a failure.
func (m *Machine) late() bool {
	return len(m.together.stragglers) > 0 && !m.spec.StopTogether.IgnoreLiveTasks
}

// clearStop takes the stop back, with its error (CO-13, SEED-65): the run goes on
// as if nobody had asked. What ended meanwhile has ended, and is judged now. Only
// what would have been started again by itself, had the hosts not been told that
// nothing is, is started again: as a new launch, and so with a new budget.
func (m *Machine) clearStop() {
	g := &m.together
	if g.wish == nil {
		return
	}
	since := g.after
	g.seq++
	g.wish, g.after, g.deadline = nil, 0, time.Time{}
	m.decided, m.decidedAt = undecided, 0
	m.stopTimer(TimerTogether)
	m.do(Tell{m.Stopping()})
	for _, t := range m.tasks {
		t.ending = t.ending && !m.spec.RestartsTasks()
	}
	var again []*task
	for _, t := range m.endedSince(since) {
		switch {
		case m.phase != running || m.decided != undecided:
			return
		case m.wouldRestart(t):
			again = append(again, t)
		default:
			m.judgeEnd(t)
		}
	}
	if m.phase != running || m.decided != undecided {
		return
	}
	for _, t := range again {
		m.launch(t)
	}
}

// endedSince are the tasks that ended after so many others, in that order.
func (m *Machine) endedSince(arrivals int) []*task {
	ended := make([]*task, m.arrivals-arrivals)
	for _, t := range m.tasks {
		if t.arrived > arrivals {
			ended[t.arrived-arrivals-1] = t
		}
	}
	return slices.DeleteFunc(ended, func(t *task) bool { return t == nil })
}

// wouldRestart: the host starts a task again that ends like this.
func (m *Machine) wouldRestart(t *task) bool {
	_, again := RestartPolicy{AutoRestart: m.spec.RestartsTasks(), MaxRestarts: m.spec.MaxRestarts}.Next(RestartHistory{Cause: t.exit.Cause})
	return again
}

// wishFailure is the failure that the stop which stands brought by a task's error.
func (m *Machine) wishFailure(e Released) (failure, bool) {
	g := &m.together
	err := g.err(m.spec)
	if err == nil || g.wish.Task == "" {
		return failure{}, false
	}
	t := m.named[g.wish.Task]
	f := failure{task: t, host: e.Hosts[t.Name()], wish: g.wish}
	if t.exit != nil {
		f.exit = spec.Exit{
			Restart: t.exit.Restart, PID: t.exit.PID, Started: t.exit.Started,
			ErrorFile: t.exit.ErrorFile, LogDir: t.exit.LogDir,
		}
	}
	// The exit code is the process's own where it failed by itself.
	f.exit.ExitCode = 1
	if t.endedBy(spec.CauseOrigin) && t.exit.ExitCode != 0 {
		f.exit.ExitCode, f.exit.Signal = t.exit.ExitCode, t.exit.Signal
	}
	f.exit.Cause, f.exit.Reported = spec.CauseOrigin, true
	f.exit.ErrorTime, f.exit.BootNanos = g.wish.At, g.wish.BootNanos
	f.exit.Message = err.String()
	if err.Traceback != "" {
		f.exit.Message += "\n" + err.Traceback
	}
	return f, true
}
