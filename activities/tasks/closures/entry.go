package closures

import (
	"encoding/json"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// state is the state of a closure.
type state int

const (
	queued state = iota // no process has it
	// doomed: it was cancelled, and no process here has it. A process of an earlier broker
	// that has not returned yet may have it.
	doomed
	given // a process has it
	ended // it has an outcome that no lease has returned yet
)

// entry is one closure that the broker holds.
type entry struct {
	closure closure.Closure
	// known reports whether closure is complete. It is not if a process has the closure from
	// an earlier broker and no lease has named it yet.
	known  bool
	state  state
	queued time.Time // while it is queued

	// While it is given:
	process *process
	// call is the number of the call; 0 stands for any call of an earlier broker.
	call uint64
	// news is the number of the answer that gave it, batch the number of closures in that
	// answer, and at its time.
	news  uint64
	batch int
	at    time.Time
	// begun reports whether the call is known to have begun. It is false while the process may
	// still be calling another closure of the same answer.
	begun bool
	// told reports whether the process must end the call.
	told bool
	// timer runs for the grace of its process.
	timer *time.Timer

	// outcome is set once it has ended, and size is the outcome's size as JSON.
	outcome closure.Outcome
	size    int

	// lease is the lease that waits for it. If nil, since is the time at which the last one
	// ended.
	lease *lease
	since time.Time
}

func (e *entry) stopTimer() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// add adds a closure that the broker did not hold.
func (b *store) add(e *entry) {
	b.entries[e.closure.ID] = e
	b.resources.refer(e.closure.Resources)
}

// drop removes a closure from the broker.
func (b *store) drop(e *entry) {
	e.stopTimer()
	delete(b.entries, e.closure.ID)
	b.resources.release(e.closure.Resources)
}

// enqueue puts a closure into the queue.
func (b *store) enqueue(e *entry) {
	e.stopTimer()
	e.state, e.process, e.call, e.begun, e.told = queued, nil, 0, false, false
	e.queued = time.Now()
	b.queue.push(e)
}

// take gives a closure to a process.
func (p *process) take(e *entry) {
	e.state, e.process = given, p
	p.holds[e.closure.ID] = e
}

// finish sets the outcome of a closure. The closure must not be queued.
func (b *store) finish(e *entry, o closure.Outcome) {
	e.stopTimer()
	b.finished++
	if b.Ended != nil {
		b.Ended(o.Kind)
	}
	if p := e.process; p != nil {
		b.releaseAgain(p, e.closure.Resources)
		delete(p.holds, e.closure.ID)
		if o.Task == "" {
			o.Task = p.task
		}
	}
	o.ID = e.closure.ID
	e.state, e.process, e.outcome, e.size = ended, nil, o, sizeOf(o)
	if e.lease != nil {
		e.lease.hasEnded(e)
		return
	}
	b.noLease(e)
}

// overhead is the approximate size of an outcome as JSON without its value and its error.
const overhead = 96

// sizeOf returns the size of an outcome as JSON, in bytes.
func sizeOf(o closure.Outcome) int {
	n := overhead + len(o.Value) + len(o.Task)
	if o.Error != nil {
		// Escaping can enlarge texts considerably. The names of the closure and the task are
		// added later.
		text, err := json.Marshal(o.Error)
		if err != nil {
			text = nil // cannot happen: it has texts and a number only
		}
		n += overhead + len(text) + len(o.Task)
	}
	return n
}
