package lifecycle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/steptime"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// maxReason limits a cancellation's reason, in bytes.
const maxReason = 2048

// maxExits limits the exits listed for a task; the newest are kept.
const maxExits = 10

// finish finishes the run with its result. Only Released contains values, hosts, and the exits of
// replaced processes.
func (a *account) finish(e Released) Finish {
	for _, t := range a.tasks {
		t.complete(e.Exits[t.Name()])
		if slices.Contains(e.Lost, e.Hosts[t.Name()]) && t.Exit == nil && t.Launch >= 0 {
			t.Exit = lostExit(t.First)
		}
		t.noteUnknown()
		t.giveUp(e.Lost)
	}
	r := spec.RunResult{
		EndedBy: a.decided, Reason: shorten.Text(a.reason, maxReason),
		Tasks: make([]spec.TaskResult, 0, len(a.tasks)), Generation: a.group.Generation, Usage: e.Usage,
		GroupRestarts: a.group.Restarts, Preemptions: a.requeue.Preemptions, Stacks: a.Latest, NotReleased: e.Problems, SharedMemory: e.SharedMemory,
	}
	failures := a.judge(&r, e)
	if r.Verdict == spec.VerdictCancelled && a.decided != byCancel {
		r.Reason = a.unfinished()
	}
	r.NotStarted = r.Limit != nil && !slices.ContainsFunc(a.tasks, func(t *task) bool { return t.Launch >= 0 })
	if s := a.Stopping(); s.Stop {
		r.Stopping, r.Stragglers, r.IgnoredStragglers = &s, a.together.stragglers, a.spec.StopTogether.IgnoreLiveTasks
	}
	restarts := a.addTasks(&r, failures, e)
	r.Slow = slowest(r.Tasks)
	fit(&r, maxResult)
	return Finish{Result: r, Restarts: restarts}
}

// addTasks adds the tasks' results to r, and returns the number of restarts.
func (a *account) addTasks(r *spec.RunResult, failures []spec.Failure, e Released) (restarts int) {
	failed := make(map[string]*spec.Failure, len(failures))
	for i := range failures {
		failed[failures[i].Task] = &failures[i]
	}
	for _, t := range a.tasks {
		f := failed[t.Name()]
		if t.absent && f == nil {
			continue
		}
		result := t.result(e)
		if _, told := e.Exits[t.Name()]; !told && result.Exit != nil {
			r.Usage = r.Usage.With(result.Exit.Usage) // the task's host has not answered
		}
		restarts += result.Restarts
		result.StacksFile = a.Stacks[t.Name()]
		result.Failed, result.WasRestarting = f != nil, f != nil && !a.final(*f)
		switch value := bytes.TrimSpace(e.Values[t.Name()]); {
		case len(value) == 0, bytes.Equal(value, []byte("null")): // no value
		case !json.Valid(value):
			r.WithoutInvalid(t.Name()) // otherwise the whole result could not be encoded
		default:
			result.Value = value
		}
		r.Tasks = append(r.Tasks, result)
	}
	return restarts
}

// maxSlow limits the slow tasks and hosts that a result names.
const maxSlow = 8

// slowest returns the slow tasks and hosts, judged by the tasks' last processes.
func slowest(results []spec.TaskResult) []spec.Slow {
	tasks := make([]steptime.Task, 0, len(results))
	for _, t := range results {
		if t.Exit != nil {
			tasks = append(tasks, steptime.Task{Name: t.Name, Type: t.Type, Host: t.Host, Rank: t.Rank, Time: t.Exit.Steps})
		}
	}
	slow := steptime.Find(tasks)
	return slow[:min(len(slow), maxSlow)]
}

// complete sets a task's exit to its last process's if it was stopped between two processes,
// because that failure has become final.
func (t *task) complete(exits []spec.Exit) {
	if t.Exit != nil || t.Launch < 0 || len(exits) == 0 {
		return
	}
	if last := exits[len(exits)-1]; last.Restart >= t.First {
		exit := t.relabel(last)
		t.Exit, t.waiting = &exit, true
	}
}

func (t *task) result(e Released) spec.TaskResult {
	r := spec.TaskResult{Name: t.Name(), Type: t.Type, Index: t.Index, Rank: t.Rank, Host: e.Hosts[t.Name()]}
	if t.Exit != nil {
		exit := *t.Exit
		r.Exit = &exit
	}
	exits := t.exits(e.Exits[t.Name()])
	for _, exit := range exits {
		r.Restarts = max(r.Restarts, exit.Restart)
	}
	r.Restarts = max(r.Restarts, len(exits)-1)
	if r.Exit == nil && t.Launch < 0 && len(exits) > 0 {
		// The task's generation was never launched, so its last exit is from the previous
		// generation.
		exit := exits[len(exits)-1]
		r.Exit = &exit
	}
	if len(exits) > 1 || r.Exit == nil {
		r.Exits = exits[max(0, len(exits)-maxExits):]
	}
	return r
}

// exits returns all of the task's known exits, the oldest first, from its hosts' releases and its
// activities' results.
func (t *task) exits(released []spec.Exit) []spec.Exit {
	all := slices.Clone(t.Earlier)
	if t.Exit != nil {
		all = append(all, *t.Exit)
	}
	// The machine's own record takes precedence, because it contains stop causes, and exits on
	// hosts that the run no longer uses.
	for _, exit := range released {
		if exit.Restart >= t.First {
			exit = t.relabel(exit)
		}
		all = withReleased(all, exit)
	}
	slices.SortStableFunc(all, func(a, b spec.Exit) int {
		return cmp.Or(a.Restart-b.Restart, a.Started.Compare(b.Started))
	})
	return all
}

// withReleased adds a host's exit to a task's exits, unless they contain it. If the run had lost
// contact and recorded an exit without a PID, the host's exit replaces it. Two processes may share
// a number, because the run may not know of a restart on a silent host, and then assigns the same
// number in the next generation.
func withReleased(exits []spec.Exit, e spec.Exit) []spec.Exit {
	unseen := -1
	for i, known := range exits {
		switch {
		case known.Restart != e.Restart:
		case known.PID == e.PID, e.PID == 0:
			return exits
		case known.PID == 0:
			unseen = i
		}
	}
	if unseen < 0 {
		return append(exits, e)
	}
	exits[unseen] = e
	return exits
}
