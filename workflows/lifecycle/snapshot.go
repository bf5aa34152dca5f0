package lifecycle

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Snapshot is what a run takes along from one execution of its workflow to the
// next: between two generations, or at a quiet moment of one.
type Snapshot struct {
	Generation int                    `json:"generation"`
	First      int                    `json:"first"`
	Counted    int                    `json:"counted,omitempty"`
	Quick      int                    `json:"quick,omitempty"`
	Added      []spec.Task            `json:"added,omitempty"`
	Exits      map[string][]spec.Exit `json:"exits,omitempty"`
	Before     *BeforeFailure         `json:"before,omitempty"`
	// Stops counts the stops together and their clears. None stands: a stop lets no
	// other generation begin, and is no quiet moment.
	Stops int `json:"stops,omitempty"`
	// Wishes are the latest that stopped the run, all of them cleared.
	Wishes []Wish `json:"wishes,omitempty"`
	// Running are the tasks of a generation that is running, and Arrivals the number of
	// ends there were of it. Between two generations there are none.
	Running  []RunningTask `json:"running,omitempty"`
	Arrivals int           `json:"arrivals,omitempty"`
}

// BeforeFailure is the failure that ended the generation before.
type BeforeFailure struct {
	Task string    `json:"task"`
	Exit spec.Exit `json:"exit"`
	Host string    `json:"host,omitempty"`
}

// RunningTask is a task of a run whose tasks are running, in rank order.
type RunningTask struct {
	Task   string `json:"task"`
	Launch int    `json:"launch"`
	First  int    `json:"first,omitempty"`
	Live   bool   `json:"live,omitempty"`
	Asked  bool   `json:"asked,omitempty"`
	Ending bool   `json:"ending,omitempty"`
	// Exit, Arrived and Host say how it has ended.
	Exit    *spec.Exit `json:"exit,omitempty"`
	Arrived int        `json:"arrived,omitempty"`
	Host    string     `json:"host,omitempty"`
}

// maxSnapshot bounds a snapshot, in bytes as JSON: it travels with the spec, and the
// server takes 2 MiB together. A run may have a thousand tasks.
const maxSnapshot = 400 << 10

// snapshotExits bounds the exits taken along for one task between two generations.
const snapshotExits = 2

// Quiet reports whether the run can go on in another execution of its workflow with
// its tasks running: nothing has ended it or is about to, and nothing is being done to
// all of its tasks.
func (m *Machine) Quiet() bool { return m.phase == running && m.decided == undecided }

// Snapshot is the machine after [Regroup], or at a quiet moment. What the hosts told of
// earlier processes goes along as far as there is room.
func (m *Machine) Snapshot(e Released) Snapshot {
	g := m.group
	s := Snapshot{
		Generation: g.generation, First: g.first, Counted: g.counted, Quick: g.quick,
		Stops: m.together.seq, Wishes: m.together.made, Exits: map[string][]spec.Exit{},
	}
	for _, t := range m.tasks {
		if t.added {
			s.Added = append(s.Added, t.Task)
		}
		exits := t.earlier
		if !m.Quiet() {
			exits = t.exits(e.Exits[t.Name()])
			exits = exits[max(0, len(exits)-snapshotExits):]
		}
		if len(exits) > 0 {
			s.Exits[t.Name()] = slices.Clone(exits)
		}
	}
	if g.before != nil {
		s.Before = &BeforeFailure{Task: g.before.task.Name(), Exit: g.before.exit, Host: g.before.host}
	}
	if m.Quiet() {
		s.Arrivals = m.arrivals
		for _, t := range m.tasks {
			s.Running = append(s.Running, RunningTask{
				Task: t.Name(), Launch: t.launch, First: t.first, Live: t.live, Asked: t.asked, Ending: t.ending,
				Exit: clone(t.exit), Arrived: t.arrived, Host: t.host,
			})
		}
	}
	m.fitSnapshot(&s)
	return s
}

func clone(e *spec.Exit) *spec.Exit {
	if e == nil {
		return nil
	}
	c := *e
	return &c
}

// AddedSize is about how many bytes tasks have in a snapshot that are not as in the spec.
// They are never left out.
func (m *Machine) AddedSize() int {
	size := 0
	for _, t := range m.tasks {
		if !t.added {
			continue
		}
		size += len(t.Address) + len(t.Dir)
		for _, arg := range t.Command {
			size += len(arg)
		}
		//workflowcheck:ignore the order makes no difference to a sum
		for name, value := range t.Env {
			size += len(name) + len(value)
		}
	}
	return size
}

// Size is the number of tasks.
func (m *Machine) Size() int { return len(m.tasks) }

// fitSnapshot leaves out what is needed least until the snapshot is small enough:
// words first, then older exits, at last the exits. Numbers and budgets stay, and how
// each task has ended, though not in which words.
func (m *Machine) fitSnapshot(s *Snapshot) {
	for _, by := range []struct {
		shorten func([]spec.Exit) []spec.Exit
		ended   func(*spec.Exit)
	}{
		{func(exits []spec.Exit) []spec.Exit { return withoutWords(exits, 160) }, func(e *spec.Exit) { e.Message = cut(e.Message, 160) }},
		{func(exits []spec.Exit) []spec.Exit { return withoutWords(exits, 0) }, func(e *spec.Exit) { e.Message = "" }},
		{func(exits []spec.Exit) []spec.Exit { return exits[max(0, len(exits)-1):] }, func(*spec.Exit) {}},
		{func([]spec.Exit) []spec.Exit { return nil }, func(e *spec.Exit) { e.LogDir, e.ErrorFile = "", "" }},
	} {
		if sizeOf(s) <= maxSnapshot {
			return
		}
		for _, t := range m.tasks {
			if exits, ok := s.Exits[t.Name()]; ok {
				s.Exits[t.Name()] = by.shorten(exits)
			}
		}
		for i := range s.Running {
			if e := s.Running[i].Exit; e != nil {
				by.ended(e)
			}
		}
	}
}

// withoutWords cuts what programs said to so many bytes each.
func withoutWords(exits []spec.Exit, most int) []spec.Exit {
	for i := range exits {
		exits[i].Message = cut(exits[i].Message, most)
	}
	return exits
}

// Resume is the machine of a run that goes on in another execution of its
// workflow; it waits for [Resumed].
func Resume(s *spec.RunSpec, tasks []spec.Task, from Snapshot) *Machine {
	m := New(s, tasks)
	for _, added := range from.Added {
		t := m.named[added.Name()]
		if t == nil {
			t = m.add(added)
		}
		t.Task, t.added = added, true
	}
	m.together.seq, m.together.made = from.Stops, from.Wishes
	m.group = group{generation: from.Generation, first: from.First, counted: from.Counted, quick: from.Quick}
	for _, t := range m.tasks {
		t.first, t.earlier = from.First, from.Exits[t.Name()]
	}
	if b := from.Before; b != nil {
		if t := m.named[b.Task]; t != nil {
			m.group.before = &failure{task: t, exit: b.Exit, host: b.Host}
		}
	}
	m.arrivals = from.Arrivals
	for _, r := range from.Running {
		m.phase = running
		if t := m.named[r.Task]; t != nil {
			t.launch, t.first, t.live, t.asked, t.ending = r.Launch, r.First, r.Live, r.Asked, r.Ending
			t.exit, t.arrived, t.host = r.Exit, r.Arrived, r.Host
		}
	}
	return m
}

// resumed starts the timers of a run that goes on in another execution: they run
// while it is being placed, too. What is running is taken over.
func (m *Machine) resumed(e Resumed) {
	switch {
	case m.group.timed || m.phase == placing && m.group.generation == 0 || m.phase > running:
		return
	case m.phase == running:
		for _, t := range m.tasks {
			if t.live {
				m.do(Launch{Task: t.Task, Generation: m.group.generation, Launch: t.launch, Added: t.added})
			}
		}
	}
	m.startTimers(e.Elapsed)
}

// Waiting is how long a resumed run has to wait before it is placed.
func (m *Machine) Waiting() time.Duration { return backoff(m.group.quick) }
