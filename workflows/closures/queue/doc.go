// Package queue is the workflow ClosureQueue, the queue of a run's closures.
//
//	coordinators ──updates──► Workflow ──► rules.Queue
//	hosts ───────serving───►     │    ◄── actions
//	      ◄──batches, which are activities
//
// Coordinators schedule closures and take outcomes by updates. A batch of closures is an activity
// on a task queue that all serving hosts poll. Package rules decides everything, and package
// closure is the contract. The queue ends with its run.
//
// An execution gives the next one its state as JSON, compressed. 100,000 closures that
// differ in a number take about 300 KiB.
package queue
