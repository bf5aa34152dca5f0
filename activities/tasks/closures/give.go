package closures

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const (
	// batchWork is roughly the work that a slot gets at once, in seconds: enough that the round
	// trip does not matter, and little enough that other processes are not idle for long and
	// outcomes are not late.
	batchWork = 0.020
	// leastWork is the minimum that each closure counts for, in seconds.
	leastWork = batchWork / maxCalls
	// maxCalls bounds the closures in one answer, unless there are more slots.
	maxCalls = 200
)

// dispatch gives waiting closures to waiting processes.
func (b *Broker) dispatch() {
	for i := 0; i < len(b.waiting) && b.queue.size > 0; {
		if p := b.waiting[i]; b.give(p) {
			b.answer(p, b.news(p)) // and others have moved up
			continue
		}
		i++
	}
	b.watchStranded()
}

// give gives closures to a process with a waiting request. It returns false if there are none
// for it.
func (b *Broker) give(p *process) bool {
	free := p.request.free
	if free <= 0 || b.queue.size == 0 || !p.serves() || len(p.taken) > 0 || b.successor && !b.settled {
		return false
	}
	lines := b.linesFor(p)
	var batch []*entry
	work, bytes := 0.0, 0
	// A process gets no more than a fair share of the queue, but at least one closure for each
	// free slot.
	most := max(free, min(maxCalls, b.queue.size*free/max(1, b.slots)))
	for len(batch) < most {
		e := b.first(lines)
		if e == nil {
			break
		}
		took, known := p.took[e.closure.Function]
		if alone := !known || b.suspects.contains(e.closure.ID); alone {
			// It begins at once, so that its process and the beginning of the call are known.
			most, took = min(most, free), batchWork
		}
		took = max(took, leastWork)
		size := len(e.closure.Args) + len(e.closure.Kwargs)
		if len(batch) >= most || len(batch) > 0 && (work+took > batchWork*float64(free)+leastWork/2 || bytes+size > closure.MaxBatchBytes) {
			break
		}
		work, bytes = work+took, bytes+size
		b.queue.remove(e)
		batch = append(batch, e)
	}
	if len(batch) == 0 {
		return false
	}
	u := &unread{closures: batch}
	told := map[uint64]bool{}
	p.nextNews()
	for _, e := range batch {
		p.take(e)
		b.calls++
		e.call, e.news, e.batch, e.at = b.calls, p.news, len(batch), time.Now()
		e.begun = len(batch) <= free
		u.calls = append(u.calls, e.call)
		for _, id := range e.closure.Resources {
			if r, ok := b.resources.all[id]; ok && !told[id] && !p.built[id] {
				told[id] = true
				u.resources = append(u.resources, r)
			}
		}
	}
	p.unread = u
	b.watchSilent(silentAfter)
	return true
}

// linesFor returns the lines with closures that a process may call.
func (b *serving) linesFor(p *process) (lines []lineKey) {
	for key := range b.queue.lines {
		if b.mayCall(p, key) {
			lines = append(lines, key)
		}
	}
	return lines
}

// mayCall reports whether a process may call the closures of a line.
func (b *serving) mayCall(p *process, key lineKey) bool {
	return (key.task == "" || key.task == p.task) && (p.has[key.function] || b.unknown(key))
}

// first returns the closure that comes first in some lines, without taking it.
func (b *serving) first(lines []lineKey) (found *entry) {
	for _, key := range lines {
		if l := b.queue.lines[key]; len(l) > 0 && (found == nil || byID(l[0], found) < 0) {
			found = l[0]
		}
	}
	return found
}

// unknown reports whether no task here has registered a function. Then any process may be
// given its closures, and says whether it has the function. A task between two processes
// still counts.
func (b *serving) unknown(key lineKey) bool {
	if !b.settled {
		return false
	}
	for task, functions := range b.known {
		if (key.task == "" || key.task == task) && functions[key.function] {
			return false
		}
	}
	for _, p := range b.processes {
		if (key.task == "" || key.task == p.task) && p.has[key.function] {
			return false
		}
	}
	return true
}

// otherFor reports whether a process other than p serves a closure.
func (b *serving) otherFor(e *entry, p *process) bool {
	task := e.closure.Task
	for _, q := range b.processes {
		if q != p && q.serves() && (task == "" || task == q.task) && q.has[e.closure.Function] {
			return true
		}
	}
	return false
}
