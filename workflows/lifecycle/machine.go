package lifecycle

import (
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Machine is the state of one run. It is not safe for concurrent use; workflow
// code is not concurrent.
type Machine struct {
	spec  *spec.RunSpec
	tasks []*task          // in rank order, then as they were added
	named map[string]*task // the same by name, for look-ups only: ranging over a map has no order
	phase phase
	// decided is what will end the run, or has. The first to come decides, and
	// what comes after it can only hasten the end.
	decided   decision
	decidedAt int    // the number of arrivals when it was decided
	reason    string // people's words for a cancellation or a failed placement
	arrivals  int    // ends of tasks so far: the order of history
	timers    []Timer
	todo      []Action // of the step at hand

	group    group // of restart scope "group"
	together together
	// stacks are the files that were captured before the stop, by task, and
	// capturedFor is the cause of that stop.
	stacks      map[string]string
	capturedFor spec.Cause
}

// task is one task and its latest launch.
type task struct {
	spec.Task
	launch int  // of this generation; -1 before the first
	live   bool // launched, and its end not yet reported
	// added: it is not in the spec, or an operator started it, perhaps with
	// another command than there.
	added bool
	// asked: an operator asked for the end of the process.
	asked bool
	// ending: and there will be no other after it.
	ending bool
	// stopped is the Why of the Stop the task was given.
	stopped spec.Cause
	// exit is how the launch ended. It stays nil where a stop met no process.
	exit    *spec.Exit
	arrived int // the place of that end among all
	// host is where it was.
	host string
	// first is the number of the first process of this launch, and earlier how
	// the launches before it ended, of all generations.
	first   int
	earlier []spec.Exit
}

// phase is where the run is in its life; doc.go has the diagram.
type phase int

const (
	placing phase = iota
	running
	regrouping // everything was told to stop, and will be launched again
	capturing  // the stacks of everything are written down before the stop
	stopping   // everything that lives was told to stop
	releasing
	ended
)

// decision is what ends a run.
type decision int

const (
	undecided    decision = iota // every task ends by itself
	byChief                      // the chief's final exit
	byFailure                    // a task's final failure, with on_failure stop
	byTimeout                    // timeout
	byMaxRunTime                 // max_run_time
	byTogether                   // a wish that all tasks stop together; it can be taken back
	byCancel                     // a cancellation, or terminate-all
	byPlacement                  // the tasks found no place
)

// New is the machine of a run. The spec is validated and has its defaults; the
// tasks are those it lists, in rank order.
func New(s *spec.RunSpec, tasks []spec.Task) *Machine {
	m := &Machine{spec: s, named: make(map[string]*task, len(tasks))}
	for _, t := range tasks {
		m.add(t)
	}
	return m
}

func (m *Machine) add(t spec.Task) *task {
	added := &task{Task: t, launch: -1}
	m.tasks = append(m.tasks, added)
	m.named[t.Name()] = added
	return added
}

// Step takes in what happened and says what to do about it, in this order.
// Events that come late or twice, and requests that [Machine.Check] would
// refuse, do nothing.
func (m *Machine) Step(e Event) []Action {
	m.todo = nil
	if m.Check(e) != nil {
		return nil
	}
	switch e := e.(type) {
	case Begin:
		m.begin(e.Elapsed)
	case Resumed:
		m.resumed(e)
	case PlacementFailed:
		m.placementFailed(e)
	case TaskEnded:
		m.taskEnded(e)
	case TimerFired:
		m.timerFired(e.Timer)
	case Cancel:
		m.cancel(e.Reason)
	case TerminateTasks:
		m.terminateTasks(e)
	case TerminateAll:
		m.terminateAll(e)
	case RestartTasks:
		m.restartTasks(e)
	case SignalTasks:
		m.signalTasks(e)
	case StartTask:
		m.startTask(e.Task)
	case CaptureStacks:
		m.captureStacks(e)
	case Captured:
		m.captured(e)
	case StopTogether:
		m.stopTogether(e)
	case ClearStop:
		m.clearStop()
	case Released:
		m.released(e)
	}
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

// begin launches everything. The run time counts from the first time on, which
// may have been in an earlier execution of the workflow.
func (m *Machine) begin(elapsed time.Duration) {
	if m.phase != placing {
		return
	}
	m.phase = running
	// A limit of 0 has passed before the first process could start. Launching
	// only to cancel in the same breath would start nothing either. Between two
	// generations any limit may have passed.
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
		m.launch(t)
	}
	m.startTimers(elapsed)
}

// startTimers starts those that go on over all generations. A limit that has
// passed already fires at once.
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

func (m *Machine) placementFailed(e PlacementFailed) {
	if m.phase != placing {
		return
	}
	if m.decided == undecided {
		m.reason = e.Message
	}
	m.decide(byPlacement)
	m.release()
}

// launch starts a task, for the first time or again. Of the launches before,
// only their exits stay, for the record.
func (m *Machine) launch(t *task) {
	if t.exit != nil {
		t.earlier = append(t.earlier[max(0, len(t.earlier)+1-maxExits):len(t.earlier):len(t.earlier)], *t.exit)
		t.first = max(t.first, t.exit.Restart+1)
	}
	t.launch++
	t.live = true
	t.forgetEnd()
	m.do(Launch{Task: t.Task, Generation: m.group.generation, Launch: t.launch, Added: t.added})
}

// forgetEnd makes a task one that nobody has asked to end, and that has not ended.
func (t *task) forgetEnd() {
	t.asked, t.ending, t.stopped, t.exit, t.arrived = false, false, "", nil, 0
}

func (m *Machine) taskEnded(e TaskEnded) {
	t := m.named[e.Task]
	if t == nil || !t.live || e.Launch != t.launch || e.Generation != m.group.generation {
		return
	}
	m.arrivals++
	t.live, t.arrived, t.host, t.exit = false, m.arrivals, e.Host, t.account(e.Exit)
	switch {
	case m.phase != running:
		// It was told to end, or will be in a moment.
	case t.endedBy(spec.CauseTimeout):
		// The host keeps max_run_time too, and its clock was first.
		m.timeUp(byMaxRunTime)
	case t.endedBy(spec.CauseOperator) && !t.asked:
		// Nobody asked us: whoever owns the host shut it down.
		m.cancel(t.Name() + " was stopped on its host")
	case m.decided == byTogether:
		// They are to end, the chief too. Who fails cuts nobody's grace short, and is
		// judged when the stop is cleared.
	default:
		m.judgeEnd(t)
	}
}

// judgeEnd is what the end of a task by itself does to the others.
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

// account is the exit of a task as this machine knows it.
func (t *task) account(e *spec.Exit) *spec.Exit {
	switch {
	case e != nil:
		exit := t.relabel(*e)
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

// relabel gives an exit that a stop brought about the cause of the stop. The host
// learns of the stop as a cancellation, which has no words: it can only say
// "collateral". Without a stop of ours it is the host that the process was lost by.
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

// decide settles what ends the run, unless that is settled.
func (m *Machine) decide(d decision) {
	if m.decided == undecided {
		m.decided, m.decidedAt = d, m.arrivals
	}
}

// stopAll tells everything that lives to stop. It happens at most once in a run:
// a stop is final and cannot be taken back or be given twice.
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

func (m *Machine) released(e Released) {
	if m.phase != releasing {
		return
	}
	m.phase = ended
	m.do(Finish{Result: m.result(e)})
}
