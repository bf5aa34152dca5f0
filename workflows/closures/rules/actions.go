package rules

import "github.com/clusterrun/clusterrun/workflows/closures/closure"

// Action is something that the workflow must do.
type Action interface{ action() }

// Dispatch leases closures to a host, by the activity [closure.ActivityRunClosures] on the
// task queue of its host worker. The workflow adds its ID, the run and the grace to the
// lease. [Queue.LeaseEnded], [Queue.LeaseLost] or [Queue.LeaseRefused] must be called with
// the number when the activity has ended.
type Dispatch struct {
	Number          int
	Host, TaskQueue string
	closure.Lease
}

// CancelOn requests a host to cancel closures that it holds, by the activity
// [closure.ActivityCancelClosures]. They end in their leases. [Queue.CancelLost] must be called
// if the activity fails.
type CancelOn struct {
	Host, Queue string
	Closures    []uint64
}

// Decide records the queue's own decisions in the history.
type Decide struct{ closure.DecidedOutcomes }

func (Dispatch) action() {}
func (CancelOn) action() {}
func (Decide) action()   {}

// Actions returns the actions since the last call, in order: decisions, requests to hosts, and
// leases. Closures are dispatched only here, so a workflow that first records all events makes
// larger leases.
func (q *Queue) Actions() []Action {
	if q.ended == "" && !q.suspended {
		q.packHeld()
		// Dispatched closures make room for requests that wait.
		for q.drain == nil && q.fill() && q.advance() {
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
