package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

// group is the state of restart scope "group" that outlives a generation.
type group struct {
	// Generation counts the launches of the whole group, from 0.
	Generation int `json:"generation"`
	// First is the number of the first process of every task in this generation. All
	// tasks begin at the same number, so that their logs lie side by side.
	First int `json:"first"`
	// Counted is the number of restarts that failures caused. Quick is the number of
	// generations in a row, up to the last, that failed within a minute.
	Counted int `json:"counted,omitempty"`
	Quick   int `json:"quick,omitempty"`
	// cause is the cause of the stop of the group. root is the failure that caused it, or nil
	// if an operator asked.
	cause spec.Cause
	root  *spec.Failure
	// Before is the root cause of the previous generation.
	Before *spec.Failure `json:"before,omitempty"`
	// Restarts are the last maxRestartsKept restarts, the oldest first.
	Restarts []spec.GroupRestart `json:"restarts,omitempty"`
	// Standstill says whether restarts lead further.
	Standstill standstill `json:"standstill,omitzero"`
	// Same counts the failures with the same error.
	Same SameError `json:"same,omitzero"`
	// timed reports whether the timers of the run were started.
	timed bool
}

// mayRegroup reports whether an end with that cause restarts the whole group. Only
// failures of programs count against the budget, not lost hosts or an operator's
// requests.
//
// In restart scope "task" hosts restart tasks, and a lost host cannot: the run is placed again, since
// its tasks would have other addresses elsewhere, and would end with it otherwise.
func (m *Machine) mayRegroup(cause spec.Cause) bool {
	lost := cause == spec.CauseHostLost && m.spec.RestartsTasks() && m.spec.OnFailure != spec.OnFailureContinue
	if m.spec.RestartScope != spec.RestartScopeGroup && !lost || m.decided != undecided || m.phase != running {
		return false
	}
	if cause == spec.CauseLogQuota {
		return false // the next generation could not write a byte
	}
	limit := m.spec.MaxRestarts
	return !cause.ByItself() || limit == nil || m.group.Counted < *limit
}

// regroup stops the remaining tasks of a generation because a task failed.
func (m *Machine) regroup(t *task) {
	m.group.cause, m.group.root = t.Exit.Cause, new(t.failure(""))
	m.stopForRegroup(spec.CauseCollateral)
}

func (m *Machine) stopForRegroup(why spec.Cause) {
	m.phase = regrouping
	m.stopLive(why)
}

// endRegrouping makes the stop under way final, since the run ends for another reason.
func (m *Machine) endRegrouping() {
	m.phase = stopping
	m.stopTimers()
}

// generationRoot returns the root cause of the generation that has ended, which need not
// be the failure that made the machine stop it. It is nil if an operator stopped it.
func (a *account) generationRoot() *spec.Failure {
	if a.group.root == nil {
		return nil
	}
	var all []spec.Failure
	for _, t := range a.endedSince(0) {
		if a.failed(t) {
			all = append(all, t.failure(t.Host))
		}
	}
	root := earliest(all)
	if f := a.byStacks(root, func(t *task) string { return t.Host }); f != nil {
		return f
	}
	if f := a.byEvidence(root, all, func(t *task) string { return t.Host }); f != nil {
		return f
	}
	return root
}

// nextGeneration places the group again, or ends the run if that leads nowhere. No task of the last generation may be live.
func (m *Machine) nextGeneration() {
	before := m.generationRoot()
	if m.standsStill(before) {
		m.decide(byFailure)
		m.endRegrouping()
		m.release()
		return
	}
	if m.returns() {
		return
	}
	first := m.renumber(m.group.First + 1)
	m.keepRestart(first, before)
	m.group.next(first, before)
	m.phase = placing
	m.silent.capturing, m.silent.tasks = false, nil
	m.lost = lostPeer{}
	m.do(RestartGroup{Generation: m.group.Generation, First: first, After: m.Waiting(), Requeue: m.requeue.next != ""})
	if m.requeue.Notice != nil {
		m.requeue.Notice = nil
		m.together.Seq++
	}
	m.requeue.next = ""
}

// next begins another generation, whose first processes have the number first. before is the
// root cause of the last generation's end.
func (g *group) next(first int, before *spec.Failure) {
	if g.cause.ByItself() {
		g.Counted++
	}
	if root := g.root; root == nil || root.Ended.Sub(root.Started) >= stableAfter {
		g.Quick = 0
	} else {
		g.Quick++
	}
	g.Generation++
	g.First, g.Before, g.root, g.cause = first, before, nil, ""
}

// regroupNow carries out restart-task in restart scope "group": the peers of a process cannot
// continue with a new process, so all tasks are restarted.
func (m *Machine) regroupNow(e RestartTasks) {
	m.group.cause, m.group.root = spec.CauseOperator, nil
	if e.Signal != "" || e.Grace != nil {
		m.do(Detached{reach(spec.UpdateTerminateTask, e.TaskRequest, namesOf(m.liveOf(e.Tasks)))})
	}
	for _, t := range m.tasks {
		t.Asked = t.Asked || t.Live
	}
	m.stopForRegroup(spec.CauseOperator)
}
