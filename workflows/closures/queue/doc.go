// Package queue is the workflow ClosureQueue, the queue of a run's closures.
//
//	coordinators ──updates──► Workflow ──► rules.Queue
//	hosts ───────serving───►     │    ◄── actions
//	      ◄──leases, which are activities
//
// Coordinators schedule closures by updates, and hosts get leases on them, which are
// activities. Package rules decides everything, and package closure is the contract. The
// queue ends with its run.
//
// Values are not kept here: they are in the history, as results of leases, and the queue's own
// decisions are in markers there. So the queue does not grow with the closures that have ended.
// The ranges of IDs of its executions tell where a value is; see [closure.DecidedOutcomes].
//
// An execution gives the next one its state as JSON, compressed. 100,000 closures that
// differ in a number take about 300 KiB.
package queue
