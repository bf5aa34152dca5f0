package rules

import "github.com/clusterrun/clusterrun/workflows/closures/closure"

// Action is something the workflow has to do.
type Action interface{ action() }

// Dispatch gives closures to a host, as an activity [closure.ActivityRunClosures]. Its
// end is told by [Queue.LeaseEnded] or [Queue.LeaseLost], with the number Lease.
type Dispatch struct {
	Lease int
	// Host is the name of the host, and Queue that of its host worker.
	Host, Queue string
	// Closures are new ones, and those the host holds already.
	Closures  []closure.Closure
	Resources []closure.Resource
	// Cancelled are those of them that the host was told to cancel: it may have been
	// started again since, or be told only after it has the lease.
	Cancelled []uint64
	// Released are ranges of the IDs of resources that nobody needs any more.
	Released [][2]uint64
}

// CancelOn tells a host that closures it holds are not to be called any more, as an
// activity [closure.ActivityCancelClosures]. They end in their leases. Where the activity
// fails, [Queue.CancelLost] is to be told.
type CancelOn struct {
	Host, Queue string
	Closures    []uint64
}

// Decide writes what the queue has decided by itself into the history.
type Decide struct{ closure.DecidedOutcomes }

func (Dispatch) action() {}
func (CancelOn) action() {}
func (Decide) action()   {}

// Actions returns what is to be done since the last time, in order: what was decided,
// what hosts are told, and what they get. What is dispatched is chosen now and not
// earlier, so a workflow that first takes in everything that has happened makes
// larger leases.
func (q *Queue) Actions() []Action {
	if q.ended == "" && !q.suspended {
		q.packHeld()
		// What is dispatched makes room, and requests that waited for it fill it.
		for q.drain == nil && !q.paused && q.fill() && q.advance() {
		}
	}
	q.noteDropped()
	actions := q.decided.take()
	for _, h := range q.hosts {
		if told := h.takeTold(); len(told) > 0 {
			actions = append(actions, CancelOn{Host: h.name, Queue: h.queue, Closures: told})
		}
	}
	for _, h := range q.hosts {
		for _, p := range h.takePacks() {
			actions = append(actions, q.lease(h, p))
		}
	}
	for _, h := range q.hosts {
		if a, due := q.releaseOn(h); due && !q.suspended {
			actions = append(actions, a)
		}
	}
	return actions
}
