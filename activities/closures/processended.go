package closures

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// ProcessEnded says that a process of a task has ended, by the name that it serves
// under; none: all processes of the task. It has to be told before the next process
// of the task is started. Calls that the process had begun are lost. What it had not
// begun is for others, and where there are none it is lost, too.
//
// Nobody knows which of several short calls a process was in that ended. None of them
// counts as lost, but from then on each is given alone: the one that ends its
// process again is found by that.
//
// For all processes of a task it returns the call in the middle of which the last of
// them to serve ended, such as "closure 17 of train"; empty: that one was in none.
func (b *Broker) ProcessEnded(task, process string) (call string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if process != "" {
		b.gone.add(processKey{task, process})
	}
	for key, p := range b.processes {
		if key.task == task && (process == "" || key.name == process) {
			b.hasEnded(p)
		}
	}
	b.heard(processKey{task, process})
	b.dispatch()
	if process == "" {
		call = b.endedIn[task]
		delete(b.endedIn, task)
	}
	return call
}

// Has reports whether a process of a task serves here or has closures, or is awaited because
// an earlier broker may have given it some.
func (b *Broker) Has(task string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.processes {
		if key.task == task {
			return true
		}
	}
	for key := range b.awaited {
		if key.task == task {
			return true
		}
	}
	return false
}

// IsGone reports whether a process has ended, or has left in order, as far as this broker
// remembers.
func (b *Broker) IsGone(task, process string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone.contains(processKey{task, process})
}

func (b *Broker) hasEnded(p *process) {
	b.forget(p)
	held := make([]*entry, 0, len(p.holds))
	for _, e := range p.holds {
		held = append(held, e)
	}
	slices.SortFunc(held, func(a, b *entry) int { return cmp.Compare(a.closure.ID, b.closure.ID) })
	if len(held) > 0 {
		b.endedIn[p.task] = calledOf(held).String()
	}
	for _, e := range held {
		if !e.begun {
			b.suspects.add(e.closure.ID)
		}
		switch {
		case e.told != untold || !e.begun && (!e.known || b.otherFor(e, p)):
			b.putBack(e)
		default:
			b.finish(e, closure.Outcome{Kind: closure.OutcomeLost, Started: e.begun, Error: &closure.Error{
				Kind: closure.ErrLost, Message: p.task + " has ended while it had the closure",
			}})
		}
	}
}

// calledOf returns the closure that a process was calling, as far as anybody knows, of those
// that it held when it ended.
func calledOf(held []*entry) *entry {
	i := slices.IndexFunc(held, func(e *entry) bool { return e.begun })
	return held[max(i, 0)]
}

func (e *entry) String() string {
	if !e.known {
		return fmt.Sprintf("closure %d", e.closure.ID)
	}
	return fmt.Sprintf("closure %d of %s", e.closure.ID, e.closure.Function)
}
