package closures

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// strandedAfter is the time that a closure waits on a host where no process serves it, or all
// are busy with other closures. A restarted task returns sooner than another host could begin,
// and a host is given less work than that in advance.
const strandedAfter = time.Second

// tasksBusy is the reason for giving back closures that wait behind long calls.
const tasksBusy = "the tasks of this host are busy"

// watchStranded schedules a check for stranded closures, if any closure waits.
func (b *serving) watchStranded() {
	if b.stranding != nil || b.queue.size == 0 || !b.settled || b.isClosed() {
		return
	}
	b.stranding = time.AfterFunc(strandedAfter, b.giveBackStranded)
}

// giveBackStranded returns closures to the queue that no process here serves, or that wait
// behind long calls: another host may have a task for them. They were not begun.
func (b *serving) giveBackStranded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stranding = nil
	if b.isClosed() {
		return
	}
	for key, l := range b.queue.lines {
		why := "no task of this host serves " + key.function + " any more"
		if b.servedHere(key) {
			if key.task != "" {
				continue // the task is on no other host
			}
			why = tasksBusy
		}
		for _, e := range slices.Clone(l) {
			if e.lease != nil && time.Since(e.queued) >= strandedAfter {
				b.queue.remove(e)
				b.finish(e, closure.Outcome{Kind: closure.OutcomeLost, Error: &closure.Error{Kind: closure.ErrLost, Message: why}})
			}
		}
	}
	b.watchStranded()
}

func (b *serving) servedHere(key lineKey) bool {
	for _, p := range b.processes {
		if p.serves() && b.mayCall(p, key) {
			return true
		}
	}
	return false
}
