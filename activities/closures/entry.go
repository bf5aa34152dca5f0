package closures

import (
	"encoding/json"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// state is where a closure is.
type state int

const (
	queued state = iota // nobody has it
	// doomed: it was cancelled, and nobody here has it. A process of an earlier broker
	// may, which is not back yet.
	doomed
	given // a process has it
	ended // it has an outcome, which no lease has taken
)

// reason is why a process was told to end a call.
type reason int

const (
	untold reason = iota
	cancelled
	timedOut
)

// entry is one closure that is held.
type entry struct {
	closure closure.Closure
	// known reports whether closure is. It is not for one that a process brought from the time of an
	// earlier broker, until a lease names it.
	known bool
	state state
	// While it is queued: its place in the heap, and since when.
	index  int
	queued time.Time

	// While it is given:
	process *process
	// call is the number of the call; 0: an earlier broker's, of any number.
	call uint64
	// news is the number of the answer that gave it, batch the number of closures in
	// that answer, and at the time.
	news  uint64
	batch int
	at    time.Time
	// begun reports whether the process has begun the call, as far as is known. It has not
	// where others were given with it that it may have called first.
	begun bool
	told  reason
	// timer is that of its timeout, then of the patience with its process.
	timer *time.Timer

	// outcome is there once it has ended, and size is what that has in JSON.
	outcome closure.Outcome
	size    int

	// lease is who waits for it. None: since when.
	lease *lease
	since time.Time
}

func (e *entry) stopTimer() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

func (e *entry) options() closure.Options {
	if e.closure.Options == nil {
		return closure.Options{}
	}
	return *e.closure.Options
}

// timeout returns what bounds one call. 0: nothing does.
func (e *entry) timeout() time.Duration {
	if e.closure.Options == nil {
		return 0
	}
	return e.closure.Options.Timeout.Span()
}

// add holds a closure that was not held.
func (b *Broker) add(e *entry) {
	b.entries[e.closure.ID] = e
	b.resources.refer(e.closure.Resources)
}

// drop holds it no longer.
func (b *Broker) drop(e *entry) {
	e.stopTimer()
	delete(b.entries, e.closure.ID)
	b.resources.release(e.closure.Resources)
}

// enqueue makes a closure wait for a process.
func (b *Broker) enqueue(e *entry) {
	e.stopTimer()
	e.state, e.process, e.call, e.begun, e.told = queued, nil, 0, false, untold
	e.queued = time.Now()
	b.queue.push(e)
}

// take gives a closure to a process.
func (p *process) take(e *entry) {
	e.state, e.process = given, p
	p.holds[e.closure.ID] = e
}

// finish gives a closure its outcome. It is in no queue any more.
func (b *Broker) finish(e *entry, o closure.Outcome) {
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

// overhead is about what an outcome has in JSON beside its value and its error.
const overhead = 96

// sizeOf returns the size of an outcome as JSON, in bytes.
func sizeOf(o closure.Outcome) int {
	n := overhead + len(o.Value) + len(o.Task)
	if o.Error != nil {
		// Texts can grow by far when they are escaped. The closure and the task are
		// named later.
		text, err := json.Marshal(o.Error)
		if err != nil {
			text = nil // it is texts and a number
		}
		n += overhead + len(text) + len(o.Task)
	}
	return n
}
