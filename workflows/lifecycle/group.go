package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

// group is the state of restart scope "group" that outlives a generation.
type group struct {
	// Generation counts the group's launches, from 0.
	Generation int `json:"generation"`
	// First is the number of every task's first process in this generation. All tasks start at the
	// same number, so that their logs line up.
	First int `json:"first"`
	// Counted is the number of restarts due to failures. Quick is the number of consecutive
	// generations, up to the last, that failed within a minute.
	Counted int `json:"counted,omitempty"`
	Quick   int `json:"quick,omitempty"`
	// cause is why the group is being stopped. root is the failure that caused the stop, or nil if
	// an operator requested it.
	cause spec.Cause
	root  *spec.Failure
	// Before is the root cause of the previous generation.
	Before *spec.Failure `json:"before,omitempty"`
	// Restarts are the last maxRestartsKept restarts, the oldest first.
	Restarts []spec.GroupRestart `json:"restarts,omitempty"`
	// Same counts consecutive failures with the same error.
	Same SameError `json:"same,omitzero"`
	// timed reports whether the run's timers were started.
	timed bool
}

// mayRegroup reports whether an end with the given cause restarts the whole group. Only programs'
// failures count against the budget, not lost hosts or an operator's requests.
//
// In restart scope "task", hosts restart their tasks, but a lost host cannot. Because the tasks
// would have different addresses on another host, the whole run is placed again instead of
// finishing.
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

// endRegrouping makes the stop in progress final, because the run finishes for another reason.
func (m *Machine) endRegrouping() {
	m.phase = stopping
	m.stopTimers()
}

// generationRoot returns the stopped generation's root cause, which need not be the failure that
// made the machine stop it. It is nil if an operator stopped it.
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

// nextGeneration places the group again or, if restarts do not make progress, finishes the run. No
// task of the last generation may be live.
func (m *Machine) nextGeneration() {
	before := m.generationRoot()
	if m.sameErrors(before) {
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

// next starts another generation with first processes numbered first. before is the root cause of
// the last generation's end.
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

// regroupNow carries out restart-task in restart scope "group". It restarts all tasks, because a
// process's peers cannot continue with its replacement.
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
