package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

var (
	// ErrNotBegun means that none of the run's tasks has been started yet.
	ErrNotBegun = errors.New("the run has not started its tasks yet; try again when it is running")
	errEnding   = errors.New("the run is ending; no tasks can be started")
	errAgain    = errors.New("all tasks are being restarted; try again when they are running")
	errNotice   = errors.New("the tasks have been notified that they will be stopped; no tasks can be started until then")
	errNoneLive = errors.New("no tasks are running")
	errNoTasks  = errors.New("no task was named; name at least one, such as worker-3")
)

// Update is an update of the run's workflow.
type Update struct {
	Name, Doc string
	// Input is an empty value of the input's type.
	Input spec.Request
	// Stopping reports whether the answer is [Machine.Stopping].
	Stopping bool
	// Event returns an update's event, given its arrival time. decode stores its input.
	Event func(decode func(any) error, at time.Time) (Event, error)
}

// Updates lists all of a run's updates.
var Updates = []Update{
	on(spec.UpdateTerminateTask, func(q spec.TaskRequest, _ time.Time) Event { return TerminateTasks{q} }),
	on(spec.UpdateTerminateAll, func(q spec.TerminateAllRequest, _ time.Time) Event { return TerminateAll{q} }),
	on(spec.UpdateRestartTask, func(q spec.TaskRequest, _ time.Time) Event { return RestartTasks{q} }),
	on(spec.UpdateSignalTask, func(q spec.SignalRequest, _ time.Time) Event { return SignalTasks{q} }),
	on(spec.UpdateStartTask, func(q spec.StartTaskRequest, _ time.Time) Event { return StartTask{q} }),
	on(spec.UpdateCaptureStacks, func(q spec.StacksRequest, _ time.Time) Event { return CaptureStacks{q} }),
	on(spec.UpdateRequestStop, func(q spec.StopRequest, _ time.Time) Event { return Cancel{spec.EscapeControl(q.Reason)} }),
	on(spec.UpdateStopTogether, func(q spec.TogetherRequest, at time.Time) Event { return StopTogether{q, at} }),
	on(spec.UpdateNotice, func(q spec.NoticeRequest, at time.Time) Event {
		return GiveNotice{From: spec.NoticeFromOperator, Reason: q.Bounded().Reason, At: at, Within: q.Within.Std(), Requeue: q.Requeue}
	}),
	on(spec.UpdateSilent, func(q spec.SilentRequest, _ time.Time) Event { return Silent{q} }),
}

// on returns an update that is passed to the machine as an event.
func on[Q spec.Request, A any](u spec.Update[Q, A], event func(Q, time.Time) Event) Update {
	var none Q
	_, stopping := any(*new(A)).(spec.Stopping)
	return Update{Name: u.Name, Doc: u.Doc, Input: none, Stopping: stopping, Event: func(decode func(any) error, at time.Time) (Event, error) {
		var q Q
		err := decode(&q)
		if err == nil {
			err = q.Validate()
		}
		return event(q, at), err
	}}
}

// HostRequest carries out a request on the hosts of live tasks.
type HostRequest struct {
	// Activity is the name of the hosts' activity.
	Activity string
	Request  spec.TasksRequest
	Tasks    []string
}

func (HostRequest) action() {}

// reach returns the action that carries out an update on the hosts of live tasks.
func reach[Q spec.TasksRequest](u spec.Update[Q, spec.RequestAnswer], q Q, tasks []string) HostRequest {
	return HostRequest{Activity: hostapi.MethodName(u.OnHosts), Request: q.For(tasks), Tasks: tasks}
}

// The requests of an operator; see also [Cancel], [StopTogether] and [GiveNotice].
type (
	TerminateTasks struct{ spec.TaskRequest }
	TerminateAll   struct{ spec.TerminateAllRequest }
	RestartTasks   struct{ spec.TaskRequest }
	SignalTasks    struct{ spec.SignalRequest }
	StartTask      struct{ spec.StartTaskRequest }
	// CaptureStacks is for the named tasks, or for all tasks if none is named.
	CaptureStacks struct{ spec.StacksRequest }
)

// Check returns why an event cannot be applied now, or nil. Only requests are refused. The error
// names the task and a remedy.
func (m *Machine) Check(e Event) error {
	if q, ok := e.(interface{ check(m *Machine) error }); ok {
		return q.check(m)
	}
	return nil
}

// Terminating an ended task does nothing, now or when it is restarted, so only the names must be
// valid.
func (e TerminateTasks) check(m *Machine) error {
	return errors.Join(m.checkTasks(e.Tasks, nil), checkSignal(e.Signal), checkGrace(e.Grace))
}

// apply terminates processes at any time, even to shorten a stop's grace. Ended tasks are skipped,
// so that the request cannot hit their next process.
func (e TerminateTasks) apply(m *Machine) {
	tasks := m.liveOf(e.Tasks)
	if len(tasks) == 0 {
		return
	}
	for _, t := range tasks {
		t.Asked = true
		t.Ending = t.Ending || !m.spec.RestartsTasks() || m.Ending()
	}
	m.do(reach(spec.UpdateTerminateTask, e.TaskRequest, namesOf(tasks)))
}

func (e TerminateAll) check(*Machine) error {
	return errors.Join(checkSignal(e.Signal), checkGrace(e.Grace))
}

// apply cancels the run and signals every process, with SIGKILL unless the request sets a signal
// or a grace, like TensorFlow's MultiProcessRunner. The cancellation also stops tasks that wait
// for a restart.
func (e TerminateAll) apply(m *Machine) {
	m.cancel("all of its tasks were terminated")
	if e.Signal == "" && e.Grace == nil {
		e.Signal = "SIGKILL"
	}
	if live := m.Live(); len(live) > 0 {
		m.do(reach(spec.UpdateTerminateTask, spec.TaskRequest{Signal: e.Signal, Grace: e.Grace}, live))
	}
}

func (e RestartTasks) check(m *Machine) error {
	if m.Ending() {
		return m.errEnding()
	}
	switch {
	case m.phase == regrouping:
		return errAgain
	case m.requeue.Notice != nil:
		return errNotice
	}
	return errors.Join(m.checkTasks(e.Tasks, hasEnded("; `clusterrun start` starts it")), checkSignal(e.Signal), checkGrace(e.Grace))
}

func (e RestartTasks) apply(m *Machine) {
	if m.spec.RestartScope == spec.RestartScopeGroup {
		m.regroupNow(e)
		return
	}
	tasks := m.liveOf(e.Tasks)
	for _, t := range tasks {
		t.Asked = true
	}
	m.do(reach(spec.UpdateRestartTask, e.TaskRequest, namesOf(tasks)))
}

func (e SignalTasks) check(m *Machine) error {
	if e.Signal == "" {
		return errors.Join(m.checkTasks(e.Tasks, hasEnded("")), errors.New("no signal was named; name one, such as SIGUSR1"))
	}
	return errors.Join(m.checkTasks(e.Tasks, hasEnded("")), checkSignal(e.Signal))
}

func (e SignalTasks) apply(m *Machine) {
	m.do(reach(spec.UpdateSignalTask, e.SignalRequest, namesOf(m.liveOf(e.Tasks))))
}

func (e CaptureStacks) check(m *Machine) error {
	switch {
	case len(e.Tasks) > 0:
		return m.checkTasks(e.Tasks, hasEnded(""))
	case m.phase == placing:
		return m.errPlacing()
	case !m.anyLive():
		return errNoneLive
	}
	return nil
}

func (e CaptureStacks) apply(m *Machine) {
	tasks := m.Live()
	if len(e.Tasks) > 0 {
		tasks = namesOf(m.liveOf(e.Tasks))
	}
	m.do(reach(spec.UpdateCaptureStacks, e.StacksRequest, tasks))
}

func (e StartTask) check(m *Machine) error {
	t, err := m.spec.AddedTask(e.StartTaskRequest)
	switch {
	case err != nil:
		return err
	case m.Ending():
		return m.errEnding()
	case m.phase == placing:
		return m.errPlacing()
	case m.phase == regrouping:
		return errAgain
	case m.requeue.Notice != nil:
		return errNotice
	}
	if known := m.named[t.Name()]; known != nil {
		switch {
		case known.absent:
			return m.errAbsent(known)
		case known.Live:
			return errors.New(spec.TaskRunningText(t.Name()))
		}
		return nil
	}
	if len(m.tasks) >= spec.MaxTasks {
		return fmt.Errorf("%s would be one task too many; a run may have at most %d tasks", t.Name(), spec.MaxTasks)
	}
	if t.Type == chiefType {
		for _, other := range m.tasks {
			if other.Type == chiefType {
				return fmt.Errorf("%s would be a second chief; this run already has %s", t.Name(), other.Name())
			}
		}
		if t.Index != 0 {
			return fmt.Errorf("%s: a chief has index 0; use chief-0", t.Name())
		}
	}
	if next := m.nextIndex(t.Type); t.Index > next && !e.New {
		return &spec.InvalidRequestError{Problems: []spec.Problem{{
			Path:    "task",
			Message: fmt.Sprintf("%s is not in the spec; the next task of type %s would be %s", t.Name(), t.Type, spec.TaskName(t.Type, next)),
			Remedy:  `start that task, or allow the gap (--new, "new": true)`,
		}}}
	}
	return nil
}

// apply launches an ended task, whose earlier exit no longer counts, or one outside the spec, which
// ranks after all tasks.
func (e StartTask) apply(m *Machine) {
	started, _ := m.spec.AddedTask(e.StartTaskRequest) // as in check
	t := m.named[started.Name()]
	if t == nil {
		started.Rank = m.nextRank()
		t = m.add(started)
		t.added, t.First = true, m.group.First
		m.launch(t)
		return
	}
	started.Rank = t.Rank
	t.Task, t.added = started, true
	m.launch(t)
}

// checkTasks reports every name that is not a task, and every task that fit rejects.
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

// TasksError lists the tasks for which a request was refused, with the reasons. If there are any,
// the request was not carried out for the remaining tasks either.
type TasksError []spec.TaskProblem

// Error returns one line per task.
func (e TasksError) Error() string {
	lines := list.Of(e, func(p spec.TaskProblem) string { return p.Message })
	return strings.Join(lines, "\n")
}

// errEnding returns why the run no longer starts anything.
func (m *Machine) errEnding() error {
	if m.decided == byTogether && m.phase == running {
		return errStopping
	}
	return errEnding
}

// errPlacing returns why no task is running yet.
func (a *account) errPlacing() error {
	if a.group.Generation > 0 {
		return errAgain
	}
	return ErrNotBegun
}

func hasEnded(remedy string) func(*task) error {
	return func(t *task) error {
		if t.Live {
			return nil
		}
		return fmt.Errorf("%s has ended%s", t.Name(), remedy)
	}
}

func checkSignal(name string) error {
	if name == "" {
		return nil
	}
	_, err := spec.SignalNumber(name)
	return err
}

func checkGrace(grace *spec.Duration) error {
	if grace != nil && *grace < 0 {
		return fmt.Errorf("grace must be 0s or more, not %s; 0s kills at once", grace)
	}
	return nil
}
