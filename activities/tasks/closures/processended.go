package closures

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// ProcessEnded records that a process of a task has ended, by the name under which it serves;
// an empty name stands for all processes of the task. It must be called before the next
// process of the task starts. Calls that the process had begun are lost. Calls that it had
// not begun are given to other processes, and are lost if there are none.
//
// If several short calls were given to the process, it is unknown which of them it was
// executing. None of them counts as lost, but from then on each is given by itself: this finds
// a closure that ends its process again.
//
// For all processes of a task it returns the call in which the last serving one ended, such
// as "closure 17 of train"; it is empty if that process was in none.
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

// has reports whether a process of a task serves here or has closures, or is awaited because
// it may hold closures from an earlier broker.
func (b *Broker) has(task string) bool {
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

// IsGone reports whether this broker remembers that a process has ended, or has left in order.
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
	slices.SortFunc(held, byID)
	if len(held) > 0 {
		b.endedIn[p.task] = calledOf(held).String()
	}
	for _, e := range held {
		if !e.begun {
			b.suspects.add(e.closure.ID)
		}
		switch {
		case e.told || !e.begun && (!e.known || b.otherFor(e, p)):
			b.putBack(e)
		default:
			b.finish(e, closure.Outcome{Kind: closure.OutcomeLost, Started: e.begun, Error: &closure.Error{
				Kind: closure.ErrLost, Message: p.task + " has ended while it had the closure",
			}})
		}
	}
}

// calledOf returns the closure that a process was calling when it ended, among those that it
// held. If none is known to have begun, it returns the first.
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
