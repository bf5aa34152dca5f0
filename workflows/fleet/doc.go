// Package fleet decides which pending run gets which hosts of a queue, and when. It is pure:
// events go in, actions come out, and the workflow Fleet carries them out.
//
//	         Asked                    Placed
//	(unknown) ─────► waiting ─► granted ─────► holding ─► (unknown)
//	                  ▲  ▲  Grant │             │  Freed
//	                  │  └────────┘ Refused     │
//	                  └─────────────────────────┘ Asked, for the next generation
//
// A [Machine] keeps the queue. Its planner finds places for a run, on the hosts of its roster.
//
// # Hosts
//
// A host worker joins with its resources ([Host]) and with what runs hold there, which replaces
// what the fleet believed; grants that are not placed yet stay counted. A second living host
// worker of the same name is refused ([Machine.CheckJoin]). A host that falls silent keeps what
// it holds and gets nothing more until it joins again. A cordon belongs to the name, and
// outlives the host worker. A host with a check that fails is cordoned as well: its host worker
// joins again with each change of that, and no person has to uncordon it. What SIGKILL does not end
// holds its room also after the end of its run ([Holding.Stuck]), until its host joins without it.
//
// The fleet counts how runs have ended on each host, by day. A host is suspected while three runs
// have failed there within a day in a way that may be its fault, all in the same way, and most other
// hosts had no such failure. It is reported, and cordoned if [Settings] say so.
//
// # Runs
//
// A run asks for room for all of its tasks, and is granted all of it at once or nothing. The
// host decides last. If it refuses, the run returns the whole grant with the reason, waits
// again with its age, and is not sent to that host for some seconds, or minutes after repeated
// refusals, unless the host joins again. A demand that no hosts of the fleet could ever meet,
// even if they were empty, is refused as soon as no more hosts are expected: half a minute
// after the last new one.
//
// A run keeps the room of its last generation for the next one. If that does not fit, the run
// must give the old room back ([Return]). So no run holds hosts while it waits for others, and
// runs never wait for each other in a circle.
//
// # Places
//
// A run gets as few hosts as possible, and those that fit best: tasks without GPUs avoid hosts
// with GPUs. With a number of hosts the tasks are dealt out evenly, and with [Demand.Spread]
// one by one over as many hosts as possible. Hosts of the last generation come first, in its
// order, so that rank 0 stays on its host. The search is greedy: with tasks that need different
// numbers of GPUs it may miss places that exist, but then [Machine.Impossible] says so before
// the run waits.
//
// # More tasks than slots
//
// Hosts that may be oversubscribed ([Host.Oversubscribe]), such as a laptop, take a run that
// needs more slots than all hosts of its class have together, once they are empty. Each gets a
// share of the tasks in proportion to its slots, so no other run has room there. The run waits
// and guards like any other. If one of the hosts may not be oversubscribed, none is, and GPUs
// never are.
//
// # Elastic runs
//
// An elastic run has the same number of tasks on each of its hosts, and as many hosts as there
// is room on, within its bounds. It waits for room on the fewest and gets the most that is
// free. If that is less than its maximum, it is granted only after there has been room on the
// fewest for [Demand.JoinWait]; until then it guards every host that it could use. Later
// generations come with the bounds and the wait that the run has chosen for them.
//
// # Order
//
// Priority comes first, 1 before 5, then age. A run that does not fit guards each host that it
// could use and that no earlier run guards. A later run gets room on a guarded host only if it
// cannot delay the run that guards it:
//
//   - If the ends of the runs there are known from their max_run_time, the guarding run starts when
//     enough of them have ended. Another run may use any room until then, and for longer only room that
//     the guarding run will not need.
//   - Otherwise another run may use only room that the guarding run could not use on the empty host.
//
// A run that could not start even if all ready hosts were empty guards nothing: it waits for hosts,
// not for other runs.
//
// # Preemption
//
// If the [Settings] of the queue say so, a run that waits preempts runs of lower priority
// ([Preempt]): as few as it needs so that it can start once they have left, the lowest priority
// first, then the least lost work. A run has one notice at a time, which is never taken back. Its
// room is promised to the runs of the queue in their order, so no others are preempted for it. A
// run does not preempt on hosts that an earlier run without such a promise could use, or after a
// host has refused it in this generation. Room that is not free ten minutes after its
// deadline is no longer counted on. The preempted run asks for its next generation like any
// other, with its age; its demand says when it may not be preempted again ([Demand.Firm]).
package fleet
