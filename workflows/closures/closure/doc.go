// Package closure is the contract of closures: the messages between coordinators, the queue
// of a run, hosts and the processes that serve. A closure, its outcome and its error have the
// same type all the way, from a program's request over the task API and the workflow to the
// process that calls it, and back.
//
//	coordinator ──ScheduleRequest──► queue ──Batch──► host ──► process
//	            ◄────TakeAnswer─────       ◄──BatchResult──
//
// The settings of a run for closures are in package spec.
package closure
