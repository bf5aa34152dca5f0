// Package queue implements the workflow ClosureQueue, a run's closure queue.
//
//	coordinators ──updates──► Workflow ──► rules.Queue
//	hosts ───────serving───►     │    ◄── actions
//	      ◄──batches, which are activities
//
// Coordinators use updates to schedule closures and receive outcomes. A batch of closures is an
// activity on a task queue that all serving hosts poll. Package rules makes all decisions, and
// package closure defines the messages. The queue closes with its run.
//
// An execution passes its state to the next one as compressed JSON. 100,000 closures that differ
// only in a number take about 300 KiB.
package queue
