package lifecycle

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

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
	// Stops counts the stops together and their clears. None stands: a stop lets no
	// other generation begin.
	Stops int `json:"stops,omitempty"`
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
	s := Snapshot{Generation: g.generation, First: g.first, Counted: g.counted, Quick: g.quick, Stops: m.together.seq, Exits: map[string][]spec.Exit{}}
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
	for _, shorten := range []func([]spec.Exit) []spec.Exit{
		func(exits []spec.Exit) []spec.Exit { return withoutWords(exits, 160) },
		func(exits []spec.Exit) []spec.Exit { return withoutWords(exits, 0) },
		func(exits []spec.Exit) []spec.Exit { return exits[max(0, len(exits)-1):] },
		func([]spec.Exit) []spec.Exit { return nil },
	} {
		if sizeOf(s) <= maxSnapshot {
			return
		}
		for _, t := range m.tasks {
			if exits, ok := s.Exits[t.Name()]; ok {
				s.Exits[t.Name()] = shorten(exits)
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
	m.together.seq = from.Stops
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
