// Package closure defines the contract of closures: the messages between coordinators, a run's
// queue, hosts and serving processes. A closure, its outcome and its error have the same types
// everywhere: in a program's request, the task API, the workflow, and the process that executes the
// closure.
//
//	coordinator ──SyncRequest──► queue ──────Batch─────► host ──► process
//	            ◄──SyncAnswer───       ◄──BatchResult───
//
// A run's settings for closures are in package spec.
package closure
