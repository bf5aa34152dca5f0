package lifecycle

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// taskList is the list of a run's tasks.
type taskList struct {
	tasks []*task          // in rank order, then in the order they were added
	named map[string]*task // for look-ups only, because map order is random
	// listed is the number of tasks in the spec. size is the number in the generation, or 0 for
	// all.
	listed, size int
	arrivals     int // counts ended tasks, in history order
}

func listOf(tasks []spec.Task) taskList {
	l := taskList{named: make(map[string]*task, len(tasks)), listed: len(tasks)}
	for _, t := range tasks {
		l.add(t)
	}
	return l
}

func (l *taskList) add(t spec.Task) *task {
	added := &task{Task: t, TaskState: TaskState{Launch: -1}}
	l.tasks = append(l.tasks, added)
	l.named[t.Name()] = added
	return added
}

// Size returns the number of tasks.
func (l *taskList) Size() int { return len(l.tasks) }

// Rank returns a task's rank.
func (l *taskList) Rank(task string) (rank int, ok bool) {
	t := l.named[task]
	if t == nil {
		return 0, false
	}
	return t.Rank, true
}

// Live returns the names of the live tasks, in rank order.
func (l *taskList) Live() []string {
	var names []string
	for _, t := range l.tasks {
		if t.Live {
			names = append(names, t.Name())
		}
	}
	return names
}

func (l *taskList) anyLive() bool {
	return slices.ContainsFunc(l.tasks, func(t *task) bool { return t.Live })
}

// liveOf returns the live tasks among those named, in rank order, each once.
func (l *taskList) liveOf(names []string) []*task {
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	var tasks []*task
	for _, t := range l.tasks {
		if t.Live && wanted[t.Name()] {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// end records the end of a launch.
func (l *taskList) end(t *task, e TaskEnded) {
	l.arrivals++
	t.Live, t.Arrived, t.Host, t.Exit = false, l.arrivals, e.Host, t.exitOf(e)
}

// endedSince returns the tasks that ended after the given arrival, in order of arrival.
func (l *taskList) endedSince(arrivals int) []*task {
	ended := make([]*task, l.arrivals-arrivals)
	for _, t := range l.tasks {
		if t.Arrived > arrivals {
			ended[t.Arrived-arrivals-1] = t
		}
	}
	return slices.DeleteFunc(ended, func(t *task) bool { return t == nil })
}

// setSize sets this generation's number of spec tasks. 0 means all.
func (l *taskList) setSize(tasks int) {
	l.size = tasks
	for i, t := range l.tasks[:l.listed] {
		t.absent = tasks > 0 && i >= tasks
	}
}

// renumber prepares all tasks for another generation, and returns the number of their first
// processes. This is from or, if higher numbers were used, the next unused number.
func (l *taskList) renumber(from int) (first int) {
	first = from
	for _, t := range l.tasks {
		first = max(first, t.next())
		t.keepEnd()
	}
	for _, t := range l.tasks {
		t.First, t.Launch = first, -1
		t.resetEnd()
	}
	return first
}

// nextIndex returns the index after the highest one of a type.
func (l *taskList) nextIndex(typ string) int {
	next := 0
	for _, t := range l.tasks {
		if t.Type == typ {
			next = max(next, t.Index+1)
		}
	}
	return next
}

func (l *taskList) nextRank() int {
	next := 0
	for _, t := range l.tasks {
		next = max(next, t.Rank+1)
	}
	return next
}

// AddedSize returns the approximate size, in bytes, of the tasks in a state that differ from the
// spec. These tasks are never omitted.
func (l *taskList) AddedSize() int {
	size := 0
	for _, t := range l.tasks {
		if !t.added {
			continue
		}
		size += len(t.Address) + len(t.Dir)
		for _, arg := range t.Command {
			size += len(arg)
		}
		//workflowcheck:ignore a sum does not depend on the order
		for name, value := range t.Env {
			size += len(name) + len(value.Value) + len(value.From.FromEnv) + len(value.From.FromFile)
		}
		if t.Signed != nil {
			size += t.Signed.Size()
		}
	}
	return size
}

func (l *taskList) errUnknown(name string) error {
	return fmt.Errorf("%s is not a task of this run; its tasks are %s", name, shorten.List(namesOf(l.tasks), 8))
}

func (l *taskList) errAbsent(t *task) error {
	return fmt.Errorf("%s is not running at present; the hosts have capacity for %d of the %d tasks", t.Name(), l.size, l.listed)
}

func namesOf(tasks []*task) []string {
	return list.Of(tasks, func(t *task) string { return t.Name() })
}
