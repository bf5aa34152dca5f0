package lifecycle

import (
	"maps"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// State is a run's state when it continues in another workflow execution, taken between two
// generations or at a quiet moment of one.
type State struct {
	Group    group    `json:"group"`
	Together together `json:"together,omitzero"` // no stop is in force at a quiet moment
	Requeue  requeue  `json:"requeue,omitzero"`
	Captured captured `json:"captured,omitzero"`
	// Size and Arrivals come from the task list.
	Size     int `json:"size,omitempty"`
	Arrivals int `json:"arrivals,omitempty"`
	// Notices is the number of the run's notices.
	Notices int `json:"notices,omitempty"`
	// Running reports whether a generation is running.
	Running bool `json:"running,omitempty"`
	// Tasks lists the tasks with noteworthy state.
	Tasks []TaskState `json:"tasks,omitempty"`
}

// maxState limits the size of a state as JSON, in bytes. It is sent together with the spec, and
// the server accepts 2 MiB in total. The state of a run with 10,000 running tasks is larger.
const maxState = 400 << 10

// maxExitsBetween limits the exits per task in a state that is taken between two generations.
const maxExitsBetween = 2

// Quiet reports whether the run can continue in another execution of its workflow while its tasks
// run: the run is not ending, and no operation on all of its tasks is in progress.
func (m *Machine) Quiet() bool {
	return m.phase == running && m.decided == undecided && !m.silent.capturing && m.lost.task == nil && m.requeue.Notice == nil
}

// State returns the machine's state after [RestartGroup] or at a quiet moment.
func (m *Machine) State() State {
	s := State{
		Group: m.group, Together: m.together, Requeue: m.requeue, Captured: m.captured, Size: m.size, Arrivals: m.arrivals,
		Notices: m.notices, Running: m.Quiet(),
	}
	s.Captured.Stacks = maps.Clone(m.Stacks)
	for _, t := range m.tasks {
		kept := t.TaskState
		kept.Of, kept.Exit, kept.Earlier = t.Name(), clone(t.Exit), slices.Clone(t.Earlier)
		if t.added {
			kept.Added = new(t.Task)
		}
		if !s.Running {
			kept.Earlier = kept.Earlier[max(0, len(kept.Earlier)-maxExitsBetween):]
		}
		if s.Running || t.added || len(t.Earlier) > 0 || len(t.Unknown) > 0 {
			s.Tasks = append(s.Tasks, kept)
		}
	}
	s.fit()
	return s
}

func clone(e *spec.Exit) *spec.Exit {
	if e == nil {
		return nil
	}
	return new(*e)
}

// fit drops the least important parts until the state is small enough: first messages and the names
// of stack files, then older exits, and then all earlier exits and the list of processes that only
// hosts can report on. Numbers, budgets and each task's latest exit are kept.
func (s *State) fit() {
	less := func(earlier func([]spec.Exit) []spec.Exit, ended func(*spec.Exit)) func() {
		return func() {
			for i := range s.Tasks {
				t := &s.Tasks[i]
				if t.Earlier = earlier(t.Earlier); t.Exit != nil {
					ended(t.Exit)
				}
			}
			s.Captured.Stacks = nil
		}
	}
	shorten.ToFit(s, maxState,
		less(func(exits []spec.Exit) []spec.Exit { return withoutWords(exits, 160) }, func(e *spec.Exit) { e.Message = shorten.Text(e.Message, 160) }),
		less(func(exits []spec.Exit) []spec.Exit { return withoutWords(exits, 0) }, func(e *spec.Exit) { e.Message, e.GPUError, e.Printed = "", "", nil }),
		less(func(exits []spec.Exit) []spec.Exit { return exits[max(0, len(exits)-1):] }, func(*spec.Exit) {}),
		func() {
			for i := range s.Tasks {
				s.Tasks[i].Unknown = nil
			}
		},
		less(func([]spec.Exit) []spec.Exit { return nil }, func(e *spec.Exit) { e.LogDir, e.ErrorFile = "", "" }),
	)
}

// withoutWords truncates the exits' messages to most bytes each.
func withoutWords(exits []spec.Exit, most int) []spec.Exit {
	for i := range exits {
		exits[i].Message = shorten.Text(exits[i].Message, most)
		exits[i].Printed, exits[i].GPUError = nil, ""
	}
	return exits
}

// Resume returns the machine for a run that continues in another workflow execution. Its first
// event is [Resumed].
func Resume(s *spec.RunSpec, tasks []spec.Task, from State) *Machine {
	m := New(s, tasks)
	m.group, m.together, m.requeue, m.captured = from.Group, from.Together, from.Requeue, from.Captured
	m.arrivals, m.notices = from.Arrivals, from.Notices
	for _, t := range m.tasks {
		t.First = from.Group.First
	}
	for _, kept := range from.Tasks {
		t := m.named[kept.Of]
		if t == nil {
			t = m.add(*kept.Added)
		}
		t.TaskState = kept
		if kept.Added != nil {
			t.Task, t.added = *kept.Added, true
		}
	}
	m.setSize(from.Size)
	if from.Running {
		m.phase = running
	}
	return m
}

// apply starts the timers of a run that continues in another execution, because timers also run
// during placement. It launches the running tasks again, under the same numbers.
func (e Resumed) apply(m *Machine) {
	switch {
	case m.group.timed || m.phase == placing && (m.group.Generation == 0 || m.requeue.Pending) || m.phase > running:
		return
	case m.phase == running:
		for _, t := range m.tasks {
			if t.Live {
				m.do(Launch{Task: t.Task, Generation: m.group.Generation, Launch: t.Launch, Added: t.added})
			}
		}
	}
	m.startTimers(e.Elapsed)
}

// Waiting returns how long a resumed run waits before it is placed.
func (a *account) Waiting() time.Duration { return backoff(a.group.Quick) }
