package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

var (
	errNotBegun = errors.New("the run has not started its tasks yet; try again once it is running")
	errEnding   = errors.New("the run is ending; nothing is started any more")
	errAgain    = errors.New("the group is being started again; try again once it is running")
	errNoneLive = errors.New("no task is running")
	errNoTasks  = errors.New("no task is named; name at least one, like worker-3")
)

// Check returns why an operator's request cannot be met now, or nil. Its errors name the
// task and what to do instead.
func (m *Machine) Check(e Event) error {
	switch e := e.(type) {
	case TerminateTasks:
		// Terminating a task that has ended does nothing, now or when it is started again,
		// so only the names have to be right.
		return errors.Join(m.checkTasks(e.Tasks, nil), checkSignal(e.Signal), checkGrace(e.Grace))
	case TerminateAll:
		return errors.Join(checkSignal(e.Signal), checkGrace(e.Grace))
	case StopTogether:
		return m.checkTogether(e)
	case ClearStop:
		return m.checkClear(e)
	case RestartTasks:
		if m.Ending() {
			return m.errEnding()
		}
		if m.phase == regrouping {
			return errAgain
		}
		return errors.Join(m.checkTasks(e.Tasks, hasEnded("; use start-task")), checkSignal(e.Signal), checkGrace(e.Grace))
	case SignalTasks:
		if e.Signal == "" {
			return errors.Join(m.checkTasks(e.Tasks, hasEnded("")), errors.New("no signal is named; name one, like SIGUSR1"))
		}
		return errors.Join(m.checkTasks(e.Tasks, hasEnded("")), checkSignal(e.Signal))
	case StartTask:
		return m.checkStart(e)
	case CaptureStacks:
		switch {
		case len(e.Tasks) > 0:
			return m.checkTasks(e.Tasks, hasEnded(""))
		case m.phase == placing:
			return m.errPlacing()
		case !m.anyLive():
			return errNoneLive
		}
		return nil
	default:
		return nil
	}
}

// checkTasks reports every name that is not a task, and every task that fit refuses.
func (m *Machine) checkTasks(names []string, fit func(*task) error) error {
	if len(names) == 0 {
		return errNoTasks
	}
	if m.phase == placing {
		return m.errPlacing()
	}
	var problems TasksError
	for _, name := range names {
		var err error
		switch t := m.named[name]; {
		case t == nil:
			err = m.errUnknown(name)
		case t.absent:
			err = m.errAbsent(t)
		case fit != nil:
			err = fit(t)
		}
		if err != nil {
			problems = append(problems, spec.TaskProblem{Task: name, Message: err.Error()})
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}

// TasksError holds why a request cannot be met, by task. Nothing was done for the other
// tasks either.
type TasksError []spec.TaskProblem

// Error has a line for each task.
func (e TasksError) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.Message
	}
	return strings.Join(lines, "\n")
}

// errEnding returns why nothing is started any more.
func (m *Machine) errEnding() error {
	if m.decided == byTogether && m.phase == running {
		return errStopping
	}
	return errEnding
}

// errPlacing returns why no task is running yet.
func (m *Machine) errPlacing() error {
	if m.group.generation > 0 {
		return errAgain
	}
	return errNotBegun
}

func hasEnded(remedy string) func(*task) error {
	return func(t *task) error {
		if t.live {
			return nil
		}
		return fmt.Errorf("%s has ended%s", t.Name(), remedy)
	}
}

func (m *Machine) errUnknown(name string) error {
	names := make([]string, 0, len(m.tasks))
	for _, t := range m.tasks {
		names = append(names, t.Name())
	}
	return fmt.Errorf("%s is not a task of this run; it has %s", name, list(names))
}

func (m *Machine) errAbsent(t *task) error {
	return fmt.Errorf("%s is not in this generation, whose hosts have %d of the %d tasks", t.Name(), m.group.size, m.listed)
}

func checkSignal(name string) error {
	if name == "" {
		return nil
	}
	_, err := spec.SignalNumber(name)
	return err
}

func checkGrace(grace *time.Duration) error {
	if grace != nil && *grace < 0 {
		return fmt.Errorf("a grace of %s is negative; give 0 to kill at once", *grace)
	}
	return nil
}

func (m *Machine) checkStart(e StartTask) error {
	t := e.Task
	switch {
	case t.Type == "" || t.Index < 0:
		return errors.New("no task is named; name it by type and index, like worker-3")
	case m.Ending():
		return m.errEnding()
	case m.phase == placing:
		return m.errPlacing()
	case m.phase == regrouping:
		return errAgain
	}
	if known := m.named[t.Name()]; known != nil {
		switch {
		case known.absent:
			return m.errAbsent(known)
		case known.live:
			return errors.New(spec.TaskRunningText(t.Name()))
		}
		return nil
	}
	if len(m.tasks) >= spec.MaxTasks {
		return fmt.Errorf("%s would be one task too many; a run has at most %d", t.Name(), spec.MaxTasks)
	}
	if t.Type == chiefType {
		for _, other := range m.tasks {
			if other.Type == chiefType {
				return fmt.Errorf("%s would be a second chief; this run has %s", t.Name(), other.Name())
			}
		}
		if t.Index != 0 {
			return fmt.Errorf("%s: a chief has index 0; use chief-0", t.Name())
		}
	}
	if next := m.nextIndex(t.Type); t.Index > next && !e.New {
		return &spec.InvalidRequestError{Problems: []spec.Problem{{
			Path:    "task",
			Message: fmt.Sprintf("%s is not in the spec, and the next of type %s is %s", t.Name(), t.Type, spec.TaskName(t.Type, next)),
			Remedy:  `start that one, or say that the gap is meant (--new, "new": true)`,
		}}}
	}
	return nil
}

// nextIndex returns the index after the highest one of a type.
func (m *Machine) nextIndex(typ string) int {
	next := 0
	for _, t := range m.tasks {
		if t.Type == typ {
			next = max(next, t.Index+1)
		}
	}
	return next
}

// liveOf returns the live tasks among those named, in rank order, each once.
func (m *Machine) liveOf(names []string) []*task {
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	var tasks []*task
	for _, t := range m.tasks {
		if t.live && wanted[t.Name()] {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func namesOf(tasks []*task) []string {
	names := make([]string, 0, len(tasks))
	for _, t := range tasks {
		names = append(names, t.Name())
	}
	return names
}

// terminateTasks ends processes at any time, also to shorten the grace of a stop. Tasks
// that have ended are left out, so that the request cannot meet their next process.
func (m *Machine) terminateTasks(e TerminateTasks) {
	tasks := m.liveOf(e.Tasks)
	if len(tasks) == 0 {
		return
	}
	for _, t := range tasks {
		t.asked = true
		t.ending = t.ending || !m.spec.RestartsTasks() || m.Ending()
	}
	m.do(Control{Op: ControlTerminate, Tasks: namesOf(tasks), Signal: e.Signal, Grace: e.Grace})
}

// terminateAll cancels the run and signals every process: with SIGKILL unless another
// signal is named, as TensorFlow's MultiProcessRunner does. The cancellation also ends
// tasks that wait to be restarted.
func (m *Machine) terminateAll(e TerminateAll) {
	m.cancel("all its tasks were terminated")
	live := m.Live()
	if len(live) == 0 {
		return
	}
	if e.Signal == "" {
		e.Signal = "SIGKILL"
	}
	m.do(Control{Op: ControlTerminate, Tasks: live, Signal: e.Signal, Grace: e.Grace})
}

func (m *Machine) restartTasks(e RestartTasks) {
	if m.spec.RestartScope == spec.RestartScopeGroup {
		m.regroupNow(e)
		return
	}
	tasks := m.liveOf(e.Tasks)
	for _, t := range tasks {
		t.asked = true
	}
	m.do(Control{Op: ControlRestart, Tasks: namesOf(tasks), Signal: e.Signal, Grace: e.Grace})
}

func (m *Machine) signalTasks(e SignalTasks) {
	m.do(Control{Op: ControlSignal, Tasks: namesOf(m.liveOf(e.Tasks)), Signal: e.Signal})
}

// startTask launches a task that has ended, whose earlier end no longer counts, or one
// outside the spec, which ranks after all others.
func (m *Machine) startTask(started spec.Task) {
	t := m.named[started.Name()]
	if t == nil {
		started.Rank = m.nextRank()
		t = m.add(started)
		t.added, t.first = true, m.group.first
		m.launch(t)
		return
	}
	started.Rank = t.Rank
	t.Task, t.added = started, true
	m.launch(t)
}

func (m *Machine) nextRank() int {
	next := 0
	for _, t := range m.tasks {
		next = max(next, t.Rank+1)
	}
	return next
}

// list joins names, and counts those beyond the first few.
func list(names []string) string {
	const most = 8
	return shorten.List(names, most)
}
