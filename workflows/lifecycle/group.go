package lifecycle

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

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
	live := m.Live()
	if len(live) == 0 {
		return
	}
	for _, t := range m.tasks {
		if t.live {
			t.stopped = why
		}
	}
	m.do(Stop{Tasks: live, Why: why})
}

// endRegrouping lets the stop that is under way be the last: something else has
// ended the run meanwhile.
func (m *Machine) endRegrouping() {
	m.phase = stopping
	m.stopTimers()
}

// nextGeneration has the group placed again. Nothing of the last one lives.
func (m *Machine) nextGeneration() {
	g := &m.group
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
		t.asked, t.ending, t.stopped, t.exit, t.arrived = false, false, "", nil, 0
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
	g.first, g.before, g.root, g.cause = first, g.root, nil, ""
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

// Snapshot is what a run takes along from one execution of its workflow to the
// next, between two generations.
type Snapshot struct {
	Generation int                    `json:"generation"`
	First      int                    `json:"first"`
	Counted    int                    `json:"counted,omitempty"`
	Quick      int                    `json:"quick,omitempty"`
	Added      []spec.Task            `json:"added,omitempty"`
	Exits      map[string][]spec.Exit `json:"exits,omitempty"`
	Before     *BeforeFailure         `json:"before,omitempty"`
}

// BeforeFailure is the failure that ended the generation before.
type BeforeFailure struct {
	Task string    `json:"task"`
	Exit spec.Exit `json:"exit"`
}

// maxSnapshot bounds a snapshot, in bytes as JSON: it travels with the spec, and the
// server takes 2 MiB together. A run may have a thousand tasks.
const maxSnapshot = 400 << 10

// snapshotExits bounds the exits taken along for one task.
const snapshotExits = 2

// Snapshot is the machine after [Regroup]. What the hosts told of earlier
// processes goes along as far as there is room.
func (m *Machine) Snapshot(e Released) Snapshot {
	g := m.group
	s := Snapshot{Generation: g.generation, First: g.first, Counted: g.counted, Quick: g.quick, Exits: map[string][]spec.Exit{}}
	for _, t := range m.tasks {
		if t.added {
			s.Added = append(s.Added, t.Task)
		}
		exits := t.exits(e.Exits[t.Name()])
		if len(exits) > 0 {
			s.Exits[t.Name()] = slices.Clone(exits[max(0, len(exits)-snapshotExits):])
		}
	}
	if g.before != nil {
		s.Before = &BeforeFailure{Task: g.before.task.Name(), Exit: g.before.exit}
	}
	m.fitSnapshot(&s)
	return s
}

// fitSnapshot leaves out what is needed least until the snapshot is small enough:
// words first, then older exits, at last the exits. Numbers and budgets stay.
func (m *Machine) fitSnapshot(s *Snapshot) {
	shorten := func(each func([]spec.Exit) []spec.Exit) {
		for _, t := range m.tasks {
			if exits := each(s.Exits[t.Name()]); len(exits) > 0 {
				s.Exits[t.Name()] = exits
			}
		}
	}
	for _, most := range []int{160, 0} {
		if sizeOf(s) <= maxSnapshot {
			return
		}
		shorten(func(exits []spec.Exit) []spec.Exit {
			for i := range exits {
				exits[i].Message = cut(exits[i].Message, most)
			}
			return exits
		})
	}
	if sizeOf(s) > maxSnapshot {
		shorten(func(exits []spec.Exit) []spec.Exit { return exits[max(0, len(exits)-1):] })
	}
	if sizeOf(s) > maxSnapshot {
		shorten(func(exits []spec.Exit) []spec.Exit {
			for i := range exits {
				exits[i].ErrorFile, exits[i].Usage = "", spec.Usage{}
			}
			return exits
		})
	}
	if sizeOf(s) > maxSnapshot {
		s.Exits = nil
	}
}

// Resume is the machine of a run that goes on in another execution of its
// workflow; it waits for [Begin].
func Resume(s *spec.RunSpec, tasks []spec.Task, from Snapshot) *Machine {
	m := New(s, tasks)
	for _, added := range from.Added {
		t := m.named[added.Name()]
		if t == nil {
			t = m.add(added)
		}
		t.Task, t.added = added, true
	}
	m.group = group{generation: from.Generation, first: from.First, counted: from.Counted, quick: from.Quick}
	for _, t := range m.tasks {
		t.first, t.earlier = from.First, from.Exits[t.Name()]
	}
	if b := from.Before; b != nil {
		if t := m.named[b.Task]; t != nil {
			m.group.before = &failure{task: t, exit: b.Exit}
		}
	}
	return m
}

// resumed starts the timers of a run that goes on in another execution: they run
// while it is being placed, too.
func (m *Machine) resumed(e Resumed) {
	if m.phase != placing || m.group.generation == 0 {
		return
	}
	m.startTimers(e.Elapsed)
}

// Waiting is how long a resumed run has to wait before it is placed.
func (m *Machine) Waiting() time.Duration { return backoff(m.group.quick) }
