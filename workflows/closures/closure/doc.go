// Package closure is the contract of closures: what coordinators, the queue of a run, hosts
// and the processes that serve say to each other. A closure, its outcome and its error look
// the same all the way, from a program's request over the task API and the workflow's
// history to the process that calls it, and back.
//
//	coordinator ──ScheduleRequest──► queue ──Lease──► host ──► process
//	            ◄──Outcome, by the history of leases──        ◄──Outcome
//
// It is beside package spec, which has of closures only the settings of a run.
package closure
