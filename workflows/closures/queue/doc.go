// Package queue is the workflow ClosureQueue, the queue of a run's closures.
//
//	coordinators ──updates──► Workflow ──► closures.Queue (the rules)
//	hosts ───────serving───►     │   ◄── actions
//	      ◄──leases, which are activities
//
// Coordinators schedule by updates, and hosts take leases on closures, which are
// activities. Package closures decides everything and package closure is the contract. The
// queue ends with its run.
//
// Values are not kept here: they are in the history, as results of leases, and what the
// queue decides by itself is in markers beside them. So its memory does not grow with what
// has ended, and the executions' ranges of IDs tell where a value is; see
// [closure.DecidedOutcomes].
package queue
