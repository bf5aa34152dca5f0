package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

// group is what restart scope "group" keeps over the generations of a run.
type group struct {
	// generation counts the launches of the whole group, from 0.
	generation int
	// first is the number of the first process of every task in this generation:
	// all of them begin at the same one, so that their logs lie side by side.
	first int
	// counted are the restarts so far that failures caused, and quick how many
	// generations in a row, up to the last, failed before they had lived a minute.
	counted, quick int
	// cause is why the group is being stopped, and root the failure that did it;
	// nil where an operator asked.
	cause spec.Cause
	root  *failure
	// before is the root of the generation before this one.
	before *failure
	// timed: the timers of the run have been started.
	timed bool
}

// mayRegroup reports whether an end with that cause has the whole group started
// again. Only failures of programs count against the budget: the loss of a host
// and what an operator does are not their fault.
func (m *Machine) mayRegroup(cause spec.Cause) bool {
	if m.spec.RestartScope != spec.RestartScopeGroup || m.decided != undecided || m.phase != running {
		return false
	}
	limit := m.spec.MaxRestarts
	return cause != spec.CauseOrigin || limit == nil || m.group.counted < *limit
}

// regroup stops what is left of a generation because a task failed.
func (m *Machine) regroup(t *task) {
	m.group.cause, m.group.root = t.exit.Cause, &failure{task: t, exit: *t.exit}
	m.stopForRegroup(spec.CauseCollateral)
}

func (m *Machine) stopForRegroup(why spec.Cause) {
	m.phase = regrouping
	m.stopLive(why)
}

// endRegrouping lets the stop that is under way be the last: something else has
// ended the run meanwhile.
func (m *Machine) endRegrouping() {
	m.phase = stopping
	m.stopTimers()
}

// generationRoot is the root cause of the generation that has ended: what made the
// run stop it was only the first that it heard of. Nil where an operator did.
func (m *Machine) generationRoot() *failure {
	if m.group.root == nil {
		return nil
	}
	var all []failure
	for _, t := range m.endedSince(0) {
		if m.failed(t) {
			all = append(all, failure{task: t, exit: *t.exit, host: t.host})
		}
	}
	return earliest(all)
}

// nextGeneration has the group placed again. Nothing of the last one lives.
func (m *Machine) nextGeneration() {
	g := &m.group
	before := m.generationRoot()
	first := g.first + 1
	for _, t := range m.tasks {
		first = max(first, t.first)
		if t.launch >= 0 {
			first = max(first, t.first+1) // also where nobody knows of its process
		}
		if t.exit != nil {
			first = max(first, t.exit.Restart+1)
			t.earlier = append(t.earlier, *t.exit)
		}
		t.earlier = t.earlier[max(0, len(t.earlier)-maxExits):]
	}
	for _, t := range m.tasks {
		t.first, t.launch = first, -1
		t.forgetEnd()
	}
	if g.cause == spec.CauseOrigin {
		g.counted++
	}
	if root := g.root; root == nil || root.exit.Ended.Sub(root.exit.Started) >= settled {
		g.quick = 0
	} else {
		g.quick++
	}
	g.generation++
	g.first, g.before, g.root, g.cause = first, before, nil, ""
	m.phase = placing
	m.do(Regroup{Generation: g.generation, First: first, After: backoff(g.quick)})
}

// regroupNow is restart-task in restart scope "group": the peers of a process
// cannot go on with another one, so all are started again.
func (m *Machine) regroupNow(e RestartTasks) {
	m.group.cause, m.group.root = spec.CauseOperator, nil
	if e.Signal != "" || e.Grace != nil {
		m.do(Control{Op: ControlTerminate, Tasks: namesOf(m.reached(e.Tasks)), Signal: e.Signal, Grace: e.Grace, Aside: true})
	}
	for _, t := range m.tasks {
		t.asked = t.asked || t.live
	}
	m.stopForRegroup(spec.CauseOperator)
}
