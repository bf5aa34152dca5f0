package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// together is the state of a stop that a task or an operator requested, and in which all tasks exit
// on their own, as in TensorFlow's Coordinator, but with tasks instead of threads.
type together struct {
	// Seq is the number of stops and clears so far.
	Seq int `json:"seq,omitempty"`
	// request is the current request, or nil. The first request remains current until it is
	// cleared.
	request *StopTogether
	// after is the number of arrivals before the request.
	after    int
	deadline time.Time
	// Done holds the latest requests that stopped the run, including cleared ones, so that a
	// repeated request stops the run only once.
	Done []StopKey `json:"done,omitempty"`
	// stragglers lists the tasks that were still running when the time for the stop was over, in
	// rank order.
	stragglers []string
}

// StopKey identifies a request to stop together. An operator's request has a key without a task.
type StopKey struct {
	Task       string `json:"task,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Key        string `json:"key"`
}

// maxStopKeys limits the requests that are remembered. This suffices because a request is repeated
// soon, if at all.
const maxStopKeys = 200

func (e StopTogether) stopKey() StopKey { return StopKey{e.Task, e.Generation, e.Key} }

var (
	errStopping   = errors.New("the tasks are stopping gracefully; no tasks can be started unless the stop is cancelled")
	errTooLate    = errors.New("the run is ending, and its tasks are being stopped")
	errGraceOver  = errors.New("the stop's grace period is over and the remaining tasks are being stopped; it is too late to cancel the stop")
	errOtherwise  = errors.New("the run is also ending for another reason; the stop can no longer be cancelled")
	errNotStopped = errors.New("the run is ending for another reason than a graceful stop; there is no stop to cancel")
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

// has reports whether a stop is in force, or the run was already stopped by e.
func (g *together) has(e StopTogether) bool {
	return g.request != nil || e.Key != "" && slices.Contains(g.Done, e.stopKey())
}

// take puts a request in force after the given number of arrivals.
func (g *together) take(e StopTogether, arrivals int) {
	e.TogetherRequest = e.Bounded()
	g.Seq++
	g.request, g.after, g.deadline = &e, arrivals, time.Time{}
	if e.Key != "" {
		g.Done = append(g.Done[max(0, len(g.Done)+1-maxStopKeys):len(g.Done):len(g.Done)], e.stopKey())
	}
}

// clear withdraws the current request, and returns the number of arrivals before it.
func (g *together) clear() (after int) {
	after = g.after
	g.Seq++
	g.request, g.after, g.deadline = nil, 0, time.Time{}
	return after
}

func (e StopTogether) check(m *Machine) error {
	if err := m.checkAsker(e.Task, e.Generation); err != nil {
		return err
	}
	switch {
	case m.together.has(e):
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

func (e ClearStop) check(m *Machine) error {
	if err := m.checkAsker(e.Task, e.Generation); err != nil {
		return err
	}
	stands := m.together.request != nil
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
	if g.has(e) {
		return
	}
	g.take(e, m.arrivals)
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

// apply withdraws the stop and its error, so that the run continues as if nothing had been
// requested. Tasks that ended since the request are judged now. Tasks that their hosts would have
// restarted without the stop are launched again, with a new budget.
func (ClearStop) apply(m *Machine) {
	g := &m.together
	if g.request == nil {
		return
	}
	since := g.clear()
	m.decided, m.decidedAt = undecided, 0
	m.stopTimer(TimerTogether)
	m.do(NotifyStopping{m.Stopping()})
	for _, t := range m.tasks {
		t.Ending = t.Ending && !m.spec.RestartsTasks()
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

// wouldRestart reports whether a host would restart a task that ended the way t did.
func (a *account) wouldRestart(t *task) bool {
	_, again := RestartPolicy{AutoRestart: a.spec.RestartsTasks(), MaxRestarts: a.spec.MaxRestarts}.Next(RestartHistory{Cause: t.Exit.Cause})
	return again
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
