package closures

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// strandedAfter is how long a closure waits on a host where nobody serves it (any more):
// a task that is started again is back sooner than another host could begin.
const strandedAfter = time.Second

// watchStranded looks for what is stranded after a while, if there is any. Where all are
// busy it is too early to tell.
func (b *Broker) watchStranded() {
	if b.stranding != nil || b.queue.size == 0 || !b.settled || b.isClosed() || len(b.waiting) == 0 && b.slots > 0 || len(b.stranded()) == 0 {
		return
	}
	b.stranding = time.AfterFunc(strandedAfter, b.giveBackStranded)
}

// stranded returns the lines that no process serves.
func (b *Broker) stranded() []*line {
	var lines []*line
	for key, l := range b.queue.lines {
		if !b.servedHere(key) {
			lines = append(lines, l)
		}
	}
	return lines
}

func (b *Broker) servedHere(key lineKey) bool {
	for _, p := range b.processes {
		if p.serves() && b.mayCall(p, key) {
			return true
		}
	}
	return false
}

// giveBackStranded gives closures back to the queue that nobody here serves: their tasks
// may have ended for good, and another host may have others. They were not begun.
func (b *Broker) giveBackStranded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stranding = nil
	if b.isClosed() {
		return
	}
	for _, l := range b.stranded() {
		for len(l.entries) > 0 {
			e := l.entries[0]
			b.queue.remove(e)
			b.finish(e, closure.Outcome{Kind: closure.OutcomeLost, Error: &closure.Error{
				Kind: closure.ErrLost, Message: "no task of this host serves " + e.closure.Function + " any more",
			}})
		}
	}
	b.watchStranded()
}
