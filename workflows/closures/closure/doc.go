// Package closure defines the contract of closures: the messages between coordinators, a run's
// queue, hosts and serving processes. A closure, its outcome and its error have the same type
// everywhere, from a program's request over the task API and the workflow to the process that
// calls it, and back.
//
//	coordinator ──SyncRequest──► queue ──────Batch─────► host ──► process
//	            ◄──SyncAnswer───       ◄──BatchResult───
//
// A run's settings for closures are in package spec.
package closure
