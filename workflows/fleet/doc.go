// Package fleet has the rules of a fleet: which hosts there are, which runs wait for
// room on them, in which order, and what each of them gets. It is pure: events go in,
// actions come out, and whoever feeds it carries them out.
//
//	          Asked                    Placed
//	(unknown) ─────► waiting ─► granted ─────► holding ─► (unknown)
//	                  ▲  ▲  Grant │             │  Freed
//	                  │  └────────┘ Refused     │
//	                  └─────────────────────────┘ Asked, for the next generation
//
// # Hosts
//
// A host worker joins with what it has ([Host]) and what runs hold there, which replaces
// what the fleet believed; grants that are not placed yet stay counted. A second living one
// of the same name is refused ([Machine.CheckJoin]). One that falls silent keeps what it
// holds, and gets nothing more, until it joins again: another instance, or another boot,
// says what is left. A cordon belongs to the name, and outlives the host worker.
//
// # Runs
//
// A run asks for room for all of its tasks, and is granted all of it at once or nothing.
// The host has the last word. If it refuses, the run returns the whole grant with the
// reason, waits again with the age it had, and is not sent to that host for five minutes,
// unless the host joins again before. What no hosts of the fleet could ever meet, however
// empty, is refused at once, but not while hosts may be on their way: half a minute after
// the last new one.
//
// A run keeps the room of its last generation for the next one. If that does not fit, it
// is asked to give the old room back ([Return]): so no run holds hosts while it waits for
// others, and runs never wait for each other in a circle.
//
// # Places
//
// As few hosts as possible, those that fit best: tasks without GPUs keep off hosts that have
// some. With a number of hosts the tasks are shared out evenly, and with [Demand.Spread] one
// by one over as many hosts as possible. Hosts of the last generation come first, in its
// order, so that rank 0 stays where it is. The search is greedy: with tasks that need
// different numbers of GPUs it may find no places where there are some, but then
// [Machine.Impossible] says so before the run waits.
//
// # More tasks than slots
//
// Hosts that may be oversubscribed ([Host.Oversubscribe]), as that of a laptop, take a run
// that needs more slots than all hosts that it could have together, once they are empty. Each
// gets a share of the tasks in proportion to its slots, so at least as many as it has slots:
// nobody joins the run there. It waits and guards as others do. Where one of the hosts may
// not be oversubscribed none is, and GPUs never are.
//
// # Elastic runs
//
// An elastic run has the same number of tasks on each of its hosts, and as many hosts as
// there is room on, within its bounds. It waits for room on the fewest, as if it wanted no
// more, and gets the most that there is. Where that is less than it may have, it is granted
// only when there has been room on the fewest for [Demand.JoinWait]; until then it guards
// every host that it could use. Later generations come with the bounds and the wait that
// the run has chosen for them.
//
// # Order
//
// Priority comes first, 1 before 5, then age. A run that does not fit guards each host that
// it could use and that no run before it guards. A run behind it gets room on a guarded host
// only if it cannot delay the one that guards it:
//
//   - Where the ends of those who hold the room are known, by their max_run_time, the one
//     that guards has its turn when enough of them are over. Until then another may use
//     any room, if its own max_run_time is over by then, and longer what is not needed then.
//   - Where they are not known, another may use only what the one that guards could not use
//     if the host were empty.
//
// A run that could not start if all hosts that are ready were empty guards nothing: it waits
// for hosts, and not for other runs.
package fleet
