package closures

import (
	"cmp"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ProcessEnded says that a process of a task has ended, by the name that it serves
// under; none: all processes of the task. It has to be told before the next process
// of the task is started. Calls that the process had begun are lost. What it had not
// begun is for others, and where there are none it is lost, too.
//
// Nobody knows which of several short calls a process was in that ended. None of them
// counts as lost, but from then on each is given alone: the one that ends its
// process again is found by that.
func (b *Broker) ProcessEnded(task, process string) {
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
	b.dispatch()
}

func (b *Broker) hasEnded(p *process) {
	b.forget(p)
	held := make([]*entry, 0, len(p.holds))
	for _, e := range p.holds {
		held = append(held, e)
	}
	slices.SortFunc(held, func(a, b *entry) int { return cmp.Compare(a.closure.ID, b.closure.ID) })
	for _, e := range held {
		if !e.begun {
			b.suspects.add(e.closure.ID)
		}
		switch {
		case e.told != untold || !e.begun && (!e.known || b.otherFor(e, p)):
			b.putBack(e)
		default:
			b.finish(e, spec.Outcome{Kind: spec.OutcomeLost, Started: e.begun, Error: &spec.ClosureError{
				Kind: spec.ErrClosureLost, Message: p.task + " has ended while it had the closure",
			}})
		}
	}
}
