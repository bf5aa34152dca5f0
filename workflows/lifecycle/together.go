package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// together is the state of a stop that a task or an operator requested, and in which all tasks exit
// on their own, as in TensorFlow's Coordinator, but with tasks instead of threads.
type together struct {
	// Seq is the number of stops and notices so far.
	Seq int `json:"seq,omitempty"`
	// request is the first request, or nil.
	request *StopTogether
	// after is the number of arrivals before the request.
	after    int
	deadline time.Time
	// stragglers lists the tasks that were still running when the time for the stop was over, in
	// rank order.
	stragglers []string
}

var (
	errStopping = errors.New("the tasks are stopping gracefully; no more tasks can be started")
	errTooLate  = errors.New("the run is ending, and its tasks are being stopped")
)

// Stopping returns whether the tasks are stopping together, and why.
func (a *account) Stopping() spec.Stopping {
	g := &a.together
	s := spec.Stopping{Seq: g.Seq, Notice: a.requeue.Notice}
	if g.request == nil {
		return s
	}
	s.Stop, s.By, s.Reason, s.Error = true, g.request.Task, g.request.Reason, g.request.Error
	s.Clean, s.Asked, s.Deadline = g.clean(a.spec), g.request.At, g.deadline
	return s
}

// clean reports whether the stop's error does not count as a failure.
func (g *together) clean(s *spec.RunSpec) bool {
	return g.request != nil && g.request.Error != nil && s.StopTogether.Clean(g.request.Error.Kind)
}

// err returns the current stop's error, if it is a failure.
func (g *together) err(s *spec.RunSpec) *spec.TogetherError {
	if g.request == nil || g.clean(s) {
		return nil
	}
	return g.request.Error
}

func (e StopTogether) check(m *Machine) error {
	if err := m.checkAsker(e.Task, e.Generation); err != nil {
		return err
	}
	switch {
	case m.together.request != nil:
		return nil // the answer is Stopping
	case m.phase == placing:
		return m.errPlacing()
	case m.phase == regrouping:
		return errAgain
	case m.phase != running, m.lost.task != nil:
		return errTooLate
	}
	return nil
}

// checkAsker refuses requests from tasks of other runs or older generations.
func (a *account) checkAsker(task string, generation int) error {
	switch {
	case task == "":
		return nil
	case a.named[task] == nil:
		return a.errUnknown(task)
	case generation != a.group.Generation:
		return fmt.Errorf("restart %[2]d of all tasks has started; this request is for restart %[1]d", generation, a.group.Generation)
	}
	return nil
}

// apply accepts the first request; later ones and their errors change nothing. During the chief's
// grace a request changes neither the verdict nor the time, but every task receives it.
func (e StopTogether) apply(m *Machine) {
	g := &m.together
	if g.request != nil {
		return
	}
	e.TogetherRequest = e.Bounded()
	g.Seq++
	g.request, g.after = &e, m.arrivals
	if m.decided != undecided {
		m.do(NotifyStopping{m.Stopping()})
		return
	}
	m.decide(byTogether)
	grace := m.spec.StopTogether.Grace.Std()
	g.deadline = e.At.Add(grace)
	m.do(NotifyStopping{m.Stopping()})
	if grace <= 0 {
		m.togetherOver()
		return
	}
	m.startTimer(TimerTogether, grace)
}

// togetherOver ends the grace, after which running tasks are stragglers. If that is a failure,
// their stacks are captured before they are stopped, unless another limit has started a capture.
func (m *Machine) togetherOver() {
	m.noteStragglers()
	if m.spec.StopTogether.IgnoreLiveTasks || m.phase == capturing {
		m.stopAll(m.whyStop(spec.CauseCollateral))
		return
	}
	m.captureFirst(spec.CauseCollateral)
}

// noteStragglers records the tasks that were still running when the stop's time was up, because its
// grace or an earlier limit of the run expired. They include tasks on a host that detected the
// limit first.
func (a *account) noteStragglers() {
	g := &a.together
	if a.decided != byTogether || g.stragglers != nil {
		return
	}
	for _, t := range a.tasks {
		if t.Live || t.endedBy(spec.CauseTimeout) {
			g.stragglers = append(g.stragglers, t.Name())
		}
	}
}

// stragglersFail reports whether stragglers exist and count as a failure.
func (a *account) stragglersFail() bool {
	return len(a.together.stragglers) > 0 && !a.spec.StopTogether.IgnoreLiveTasks
}

// requestFailure returns the failure that the current stop carries, if a task requested it with an
// error.
func (a *account) requestFailure(e Released) (spec.Failure, bool) {
	g := &a.together
	err := g.err(a.spec)
	if err == nil || g.request.Task == "" {
		return spec.Failure{}, false
	}
	t := a.named[g.request.Task]
	f := spec.Failure{Task: t.Name(), Rank: t.Rank, Host: e.Hosts[t.Name()], Evidence: spec.EvidenceRequest}
	if t.Exit != nil {
		f.Exit = spec.Exit{
			Restart: t.Exit.Restart, PID: t.Exit.PID, Started: t.Exit.Started,
			ErrorFile: t.Exit.ErrorFile, LogDir: t.Exit.LogDir,
		}
	}
	// The exit code is that of the process if it failed on its own.
	f.ExitCode = 1
	if t.failedByItself() && t.Exit.ExitCode != 0 {
		f.ExitCode, f.Signal = t.Exit.ExitCode, t.Exit.Signal
	}
	f.Cause, f.Reported = spec.CauseOrigin, true
	f.ErrorTime, f.BootNanos = g.request.At, g.request.BootNanos
	f.Message = err.String()
	if err.Traceback != "" {
		f.Message += "\n" + err.Traceback
	}
	return f, true
}
