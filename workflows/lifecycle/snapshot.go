package lifecycle

import (
	"maps"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Snapshot is the state of a run that continues in another execution of its workflow,
// taken between two generations or at a quiet moment of one.
type Snapshot struct {
	Generation int `json:"generation"`
	First      int `json:"first"`
	Size       int `json:"size,omitempty"`
	Counted    int `json:"counted,omitempty"`
	// Failed, Standstill, Furthest and Same are the state of the rule about restarts that lead
	// nowhere.
	Failed     bool                   `json:"failed,omitempty"`
	Standstill int                    `json:"standstill,omitempty"`
	Furthest   *float64               `json:"furthest,omitempty"`
	Same       SameError              `json:"same,omitzero"`
	Quick      int                    `json:"quick,omitempty"`
	Added      []spec.Task            `json:"added,omitempty"`
	Exits      map[string][]spec.Exit `json:"exits,omitempty"`
	// Unknown has the tasks whose end in the last generation is not known, with the numbers of
	// their first processes in it.
	Unknown  map[string]int      `json:"unknown,omitempty"`
	Before   *spec.Failure       `json:"before,omitempty"`
	Restarts []spec.GroupRestart `json:"restarts,omitempty"`
	// Stops is the number of stops together and their clears. None is in force: a stop
	// lets no other generation begin, and is not a quiet moment.
	Stops int `json:"stops,omitempty"`
	// Cleared holds the latest requests to stop together, all of them cleared.
	Cleared []StopKey `json:"cleared,omitempty"`
	// Running holds the tasks of a generation that is running, in rank order, and Arrivals
	// the number of ends in it. Between two generations both are empty.
	Running  []RunningTask `json:"running,omitempty"`
	Arrivals int           `json:"arrivals,omitempty"`
	// Stacks are the findings of the last capture of stacks, in the generation FoundIn, and
	// StackFiles has the files by task.
	Stacks     *stacktree.Findings `json:"stacks,omitempty"`
	FoundIn    int                 `json:"found_in,omitempty"`
	StackFiles map[string]string   `json:"stack_files,omitempty"`
	// SilenceRestarts counts the restarts of on_silence.
	SilenceRestarts int `json:"silence_restarts,omitempty"`
	// Notices counts the notices of the run.
	Notices int `json:"notices,omitempty"`
	// Preemptions and Requeued count the returns to the queue, after a notice and for other
	// reasons. Pending reports whether the run is pending again. Notice came between two
	// generations.
	Preemptions int              `json:"preemptions,omitempty"`
	Requeued    int              `json:"requeued,omitempty"`
	Pending     bool             `json:"pending,omitempty"`
	Notice      *spec.StopNotice `json:"notice,omitempty"`
}

// RunningTask is the state of a task in a generation that is running.
type RunningTask struct {
	Task   string `json:"task"`
	Launch int    `json:"launch"`
	First  int    `json:"first,omitempty"`
	Live   bool   `json:"live,omitempty"`
	Asked  bool   `json:"asked,omitempty"`
	Ending bool   `json:"ending,omitempty"`
	// Exit, Arrived and Host are set if the task has ended.
	Exit    *spec.Exit `json:"exit,omitempty"`
	Arrived int        `json:"arrived,omitempty"`
	Host    string     `json:"host,omitempty"`
}

// maxSnapshot bounds a snapshot, in bytes as JSON. It is sent together with the spec, and the
// server takes 2 MiB in all. The snapshot of a run with 10,000 running tasks is larger.
const maxSnapshot = 400 << 10

// snapshotExits is the most exits of a task in a snapshot between two generations.
const snapshotExits = 2

// Quiet reports whether the run can continue in another execution of its workflow while
// its tasks run: it is not ending, and no operation on all of its tasks is under way.
func (m *Machine) Quiet() bool {
	return m.phase == running && m.decided == undecided && !m.silent.capturing && m.lost.task == nil && m.requeue.notice == nil
}

// Snapshot returns the state of the machine after [Regroup] or at a quiet moment.
func (m *Machine) Snapshot() Snapshot {
	g := m.group
	s := Snapshot{
		Generation: g.generation, First: g.first, Size: m.size, Counted: g.counted, Quick: g.quick, Restarts: g.restarts,
		Failed: g.standstill.failed, Standstill: g.standstill.restarts, Furthest: g.standstill.furthest, Same: g.same,
		Stops: m.together.seq, Cleared: m.together.done, Exits: map[string][]spec.Exit{}, Stacks: m.findings, FoundIn: m.foundIn, StackFiles: maps.Clone(m.stacks),
		SilenceRestarts: m.silent.restarts, Notices: m.notices,
		Preemptions: m.requeue.preemptions, Requeued: m.requeue.counted, Pending: m.requeue.pending, Notice: m.requeue.notice,
	}
	for _, t := range m.tasks {
		if t.added {
			s.Added = append(s.Added, t.Task)
		}
		exits := t.earlier
		if !m.Quiet() {
			exits = t.exits(nil)
			exits = exits[max(0, len(exits)-snapshotExits):]
		}
		if len(exits) > 0 {
			s.Exits[t.Name()] = slices.Clone(exits)
		}
		if t.unknown != nil {
			if s.Unknown == nil {
				s.Unknown = map[string]int{}
			}
			s.Unknown[t.Name()] = *t.unknown
		}
	}
	if g.before != nil {
		s.Before = m.describe(*g.before)
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

// fitSnapshot drops the least needed parts until the snapshot is small enough: messages and the
// names of files of stacks first, then older exits, then all earlier exits. Numbers, budgets
// and how each task ended stay.
func (l *taskList) fitSnapshot(s *Snapshot) {
	less := func(earlier func([]spec.Exit) []spec.Exit, ended func(*spec.Exit)) func() {
		return func() {
			for _, t := range l.tasks {
				if exits, ok := s.Exits[t.Name()]; ok {
					s.Exits[t.Name()] = earlier(exits)
				}
			}
			for i := range s.Running {
				if e := s.Running[i].Exit; e != nil {
					ended(e)
				}
			}
			s.StackFiles = nil
		}
	}
	shorten.ToFit(s, maxSnapshot,
		less(func(exits []spec.Exit) []spec.Exit { return withoutWords(exits, 160) }, func(e *spec.Exit) { e.Message = shorten.Text(e.Message, 160) }),
		less(func(exits []spec.Exit) []spec.Exit { return withoutWords(exits, 0) }, func(e *spec.Exit) { e.Message, e.GPUError, e.Printed = "", "", nil }),
		less(func(exits []spec.Exit) []spec.Exit { return exits[max(0, len(exits)-1):] }, func(*spec.Exit) {}),
		less(func([]spec.Exit) []spec.Exit { return nil }, func(e *spec.Exit) { e.LogDir, e.ErrorFile = "", "" }),
	)
}

// withoutWords cuts the messages of exits to at most that many bytes each.
func withoutWords(exits []spec.Exit, most int) []spec.Exit {
	for i := range exits {
		exits[i].Message = shorten.Text(exits[i].Message, most)
		exits[i].Printed, exits[i].GPUError = nil, ""
	}
	return exits
}

// Resume returns the machine of a run that continues in another execution of its
// workflow. Its first event is [Resumed].
func Resume(s *spec.RunSpec, tasks []spec.Task, from Snapshot) *Machine {
	m := New(s, tasks)
	for _, added := range from.Added {
		t := m.named[added.Name()]
		if t == nil {
			t = m.add(added)
		}
		t.Task, t.added = added, true
	}
	m.together.seq, m.together.done = from.Stops, from.Cleared
	m.group = group{generation: from.Generation, first: from.First, counted: from.Counted, quick: from.Quick, restarts: from.Restarts, same: from.Same}
	m.group.standstill = standstill{furthest: from.Furthest, failed: from.Failed, restarts: from.Standstill}
	m.requeue = requeue{preemptions: from.Preemptions, counted: from.Requeued, pending: from.Pending, notice: from.Notice}
	m.setSize(from.Size)
	for _, t := range m.tasks {
		t.first, t.earlier = from.First, from.Exits[t.Name()]
		if n, ok := from.Unknown[t.Name()]; ok {
			t.unknown = &n
		}
	}
	if b := from.Before; b != nil && m.named[b.Task] != nil {
		m.group.before = &spec.Failure{Task: b.Task, Rank: b.Rank, Host: b.Host, Exit: b.Exit, Evidence: b.Evidence}
	}
	m.arrivals, m.silent.restarts, m.notices = from.Arrivals, from.SilenceRestarts, from.Notices
	m.findings, m.foundIn, m.stacks = from.Stacks, from.FoundIn, from.StackFiles
	for _, r := range from.Running {
		m.phase = running
		if t := m.named[r.Task]; t != nil {
			t.launch, t.first, t.live, t.asked, t.ending = r.Launch, r.First, r.Live, r.Asked, r.Ending
			t.exit, t.arrived, t.host = r.Exit, r.Arrived, r.Host
		}
	}
	return m
}

// apply starts the timers of a run that continues in another execution, which also run while it
// is being placed, and launches the running tasks again, under the same numbers.
func (e Resumed) apply(m *Machine) {
	switch {
	case m.group.timed || m.phase == placing && (m.group.generation == 0 || m.requeue.pending) || m.phase > running:
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

// Waiting returns the time that a resumed run waits before it is placed.
func (a *account) Waiting() time.Duration { return backoff(a.group.quick) }
