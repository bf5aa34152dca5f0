package lifecycle

import (
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Machine is the state of one run. It is not safe for concurrent use; workflow
// code is not concurrent.
type Machine struct {
	spec  *spec.RunSpec
	tasks []*task // in rank order, then as they were added
	// listed is how many of them the spec lists.
	listed int
	named  map[string]*task // the same by name, for look-ups only: ranging over a map has no order
	phase  phase
	// decided is why the run ends. The first decision stands; what comes after it can
	// only hasten the end.
	decided   decision
	decidedAt int    // the number of arrivals when it was decided
	reason    string // why it was cancelled or could not be placed, in an operator's words
	arrivals  int    // ends of tasks so far: the order of history
	timers    []Timer
	todo      []Action // of the step at hand

	group    group // of restart scope "group"
	together together
	// stacks holds the files captured last, by task, and findings what they tell; nil if
	// nothing was captured. capturedFor is the cause of the stop that waits for it.
	stacks      map[string]string
	foundIn     int // the generation that findings is of
	findings    *stacktree.Findings
	silent      silentTasks
	capturedFor spec.Cause
}

// task is one task and its latest launch.
type task struct {
	spec.Task
	launch int  // of this generation; -1 before the first
	live   bool // launched, and its end not yet reported
	// added reports whether the task differs from the spec: it is not in it, or an
	// operator started it with another command.
	added bool
	// absent reports whether this generation has no such task: its hosts have room for fewer.
	absent bool
	// asked reports whether an operator asked the process to end.
	asked bool
	// ending reports whether that process is the last of the launch.
	ending bool
	// stopped is the Why of the Stop sent to the task; empty if there was none.
	stopped spec.Cause
	// exit is how the launch ended. It stays nil if the stop found no process.
	exit *spec.Exit
	// waiting reports whether it was stopped while it waited for its restart, so that exit is
	// that of the process before.
	waiting bool
	arrived int // the position of that end among all ends, from 1
	// host is where the launch ended.
	host string
	// first is the number of the launch's first process. earlier holds the exits of
	// the launches before it, of all generations.
	first   int
	earlier []spec.Exit
}

// phase is a state of the run; doc.go has the diagram.
type phase int

const (
	placing phase = iota
	running
	regrouping // all tasks are being stopped, to be launched again
	capturing  // the stacks of all tasks are being written before they are stopped
	stopping   // all live tasks are being stopped
	releasing
	ended
)

// decision is why a run ends.
type decision int

const (
	undecided    decision = iota // every task ends by itself
	byChief                      // the chief's final exit
	byFailure                    // a task's final failure, with on_failure stop
	byTimeout                    // timeout
	byMaxRunTime                 // max_run_time
	byTogether                   // a request that all tasks stop together; it can be cleared
	byCancel                     // a cancellation, or terminate-all
	byPlacement                  // no host took the tasks
)

// New returns the machine of a run. The spec must be validated and have its defaults;
// tasks are those it lists, in rank order.
func New(s *spec.RunSpec, tasks []spec.Task) *Machine {
	m := &Machine{spec: s, named: make(map[string]*task, len(tasks))}
	for _, t := range tasks {
		m.add(t)
	}
	m.listed = len(tasks)
	return m
}

func (m *Machine) add(t spec.Task) *task {
	added := &task{Task: t, launch: -1}
	m.tasks = append(m.tasks, added)
	m.named[t.Name()] = added
	return added
}

// Step applies an event and returns the actions to carry out, in order. Events that
// come late or twice, and requests that [Machine.Check] refuses, do nothing.
func (m *Machine) Step(e Event) []Action {
	m.todo = nil
	if m.Check(e) != nil {
		return nil
	}
	e.apply(m)
	switch m.phase {
	case running, capturing, stopping:
		if !m.anyLive() {
			m.release()
		}
	case regrouping:
		if !m.anyLive() {
			m.nextGeneration()
		}
	}
	return m.todo
}

func (m *Machine) do(a Action) { m.todo = append(m.todo, a) }

// apply launches all tasks of a generation. The run time since the first one began may have
// passed in an earlier execution of the workflow.
func (e Begin) apply(m *Machine) {
	if m.phase != placing {
		return
	}
	m.phase = running
	m.setSize(e.Tasks)
	elapsed := e.Elapsed
	// A limit of 0 passes before any process can start, so nothing is launched.
	// Between two generations any limit may pass.
	if d := m.spec.Timeout; d != nil && d.Std() <= elapsed {
		m.decide(byTimeout)
	}
	if d := m.spec.MaxRunTime; d != nil && d.Std() <= elapsed {
		m.decide(byMaxRunTime)
	}
	if m.decided != undecided {
		return
	}
	for _, t := range m.tasks {
		if !t.absent {
			m.launch(t)
		}
	}
	m.startTimers(elapsed)
}

// startTimers starts the timers that span all generations. A limit that has already
// passed fires at once.
func (m *Machine) startTimers(elapsed time.Duration) {
	if m.group.timed {
		return
	}
	m.group.timed = true
	if d := m.spec.Timeout; d != nil {
		m.startTimer(TimerTimeout, max(d.Std()-elapsed, atOnce))
	}
	if d := m.spec.MaxRunTime; d != nil {
		m.startTimer(TimerMaxRunTime, max(d.Std()-elapsed, atOnce))
	}
}

func (e PlacementFailed) apply(m *Machine) {
	if m.phase != placing {
		return
	}
	if m.decided == undecided {
		m.reason = e.Message
	}
	m.decide(byPlacement)
	m.release()
}

// launch starts a task, for the first time or again. Only the exits of its earlier
// launches are kept.
func (m *Machine) launch(t *task) {
	if t.exit != nil {
		t.earlier = append(t.earlier[max(0, len(t.earlier)+1-maxExits):len(t.earlier):len(t.earlier)], *t.exit)
		t.first = max(t.first, t.exit.Restart+1)
	}
	t.launch++
	t.live = true
	t.resetEnd()
	m.do(Launch{Task: t.Task, Generation: m.group.generation, Launch: t.launch, Added: t.added})
}

// resetEnd clears how the last launch ended and who asked for that.
func (t *task) resetEnd() {
	t.asked, t.ending, t.stopped, t.exit, t.arrived = false, false, "", nil, 0
}

func (e TaskEnded) apply(m *Machine) {
	t := m.named[e.Task]
	if t == nil || !t.live || e.Launch != t.launch || e.Generation != m.group.generation {
		return
	}
	m.arrivals++
	t.live, t.arrived, t.host, t.exit = false, m.arrivals, e.Host, t.exitOf(e)
	switch {
	case m.phase != running:
		// It was stopped, or is about to be.
	case t.endedBy(spec.CauseTimeout):
		// The host enforces max_run_time too, and noticed first.
		m.timeUp(byMaxRunTime)
	case t.endedBy(spec.CauseOperator) && !t.asked:
		// No request asked for it: the owner of the host shut it down.
		m.cancel(t.Name() + " was stopped on its host")
	case m.decided == byTogether:
		// All tasks are to end by themselves. A failure does not cut the grace short; it is
		// judged if the stop is cleared.
	default:
		m.judgeEnd(t)
	}
}

// judgeEnd decides what follows for the run from a task that ended by itself.
func (m *Machine) judgeEnd(t *task) {
	switch {
	case m.failed(t) && m.mayRegroup(t.exit.Cause):
		m.regroup(t)
	case m.isChief(t):
		m.chiefEnded()
	case m.decided == undecided && m.failed(t) && m.spec.OnFailure != spec.OnFailureContinue:
		m.decide(byFailure)
		m.stopAll(spec.CauseCollateral)
	}
}

// exitOf returns the exit to record for the end of a launch.
func (t *task) exitOf(e TaskEnded) *spec.Exit {
	switch {
	case e.Exit != nil:
		exit := t.relabel(*e.Exit)
		return &exit
	case t.stopped == "":
		// Nobody stopped the task and nobody knows how it ended.
		return &spec.Exit{
			Restart: t.first, ExitCode: -1, Cause: spec.CauseHostLost,
			Message: "its activity closed without an account of the process",
		}
	default:
		return nil
	}
}

// relabel gives an exit that a stop caused the cause of that stop. A stop reaches the
// host as a cancellation, which carries no reason, so the host can only report
// "collateral". If the machine sent no stop, the process was lost with its host.
func (t *task) relabel(e spec.Exit) spec.Exit {
	switch {
	case e.Cause != spec.CauseCollateral:
	case t.stopped != "":
		e.Cause = t.stopped
	default:
		e.Cause = spec.CauseHostLost
		e.Message = strings.TrimSpace("its host stopped it, though nobody in this run asked for it\n" + e.Message)
	}
	return e
}

func (t *task) endedBy(c spec.Cause) bool { return t.exit != nil && t.exit.Cause == c }

func (t *task) failedByItself() bool { return t.exit != nil && t.exit.Cause.ByItself() }

// decide records why the run ends, unless that is already decided.
func (m *Machine) decide(d decision) {
	if m.decided == undecided {
		m.decided, m.decidedAt = d, m.arrivals
	}
}

// stopAll stops all live tasks for good. It happens at most once in a run.
func (m *Machine) stopAll(why spec.Cause) {
	m.phase = stopping
	m.stopTimers()
	m.stopLive(why)
}

func (m *Machine) stopLive(why spec.Cause) {
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

func (m *Machine) cancel(reason string) {
	switch m.phase {
	case placing:
		m.reason = reason
		m.decide(byCancel)
		m.release()
	case running, capturing:
		if m.decided == undecided {
			m.reason = reason
		}
		m.decide(byCancel)
		m.stopAll(m.whyStop(spec.CauseOperator))
	case regrouping:
		m.reason = reason
		m.decide(byCancel)
		m.endRegrouping()
	}
}

func (m *Machine) release() {
	m.stopTimers()
	m.phase = releasing
	m.do(Release{})
}

func (e Released) apply(m *Machine) {
	if m.phase != releasing {
		return
	}
	m.phase = ended
	m.do(m.finish(e))
}
