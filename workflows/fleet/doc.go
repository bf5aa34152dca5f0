// Package fleet decides which pending run gets which hosts of a queue, and when. It is pure:
// events go in, actions come out, and the workflow Fleet carries them out.
//
//	         Asked                    Placed
//	(unknown) ─────► waiting ─► granted ─────► holding ─► (unknown)
//	                  ▲  ▲  Grant │             │  Freed
//	                  │  └────────┘ Refused     │
//	                  └─────────────────────────┘ Asked, for the next generation
//
// A [Machine] keeps the queue. Its planner finds places for a run on the hosts of its roster.
//
// # Hosts
//
// A host worker joins with its resources ([Host]) and a list of what runs hold on it, which
// replaces the fleet's records; grants that are not placed yet stay counted. A second living host
// worker of the same name is refused ([Machine.CheckJoin]). A silent host keeps what it holds and
// gets nothing more until it joins again. A cordon belongs to the name, and outlives the host
// worker. A host with a failing check is also cordoned: its host worker joins again whenever a
// check's result changes, and no one has to uncordon it. A process that survives SIGKILL keeps
// its slots even after its run has ended ([Holding.Stuck]), until its host joins without it.
//
// # Runs
//
// A run requests capacity for all of its tasks, and is granted all or nothing. The host decides
// last. If it refuses, the run returns the whole grant with the reason, waits again with its age,
// and avoids that host for some seconds, or minutes after repeated refusals, unless the host
// joins again. A demand that the fleet could never meet, even with all hosts empty, is refused as
// soon as no more hosts are expected: half a minute after the last new one.
//
// A run keeps the capacity of its last generation for the next one. If that does not fit, the run
// must release it ([Return]). So no run holds hosts while it waits for more, and runs never wait
// for each other in a circle.
//
// # Places
//
// A run gets as few hosts as possible, and the best fit: tasks without GPUs avoid hosts with
// GPUs. If a number of hosts is set, the tasks are dealt out evenly, and with [Demand.Spread] one
// by one over as many hosts as possible. Hosts of the last generation come first, in its order,
// so that rank 0 stays on its host. The search is greedy: if tasks need different numbers of GPUs
// it may miss possible places, but then [Machine.Impossible] reports that before the run waits.
//
// # More tasks than slots
//
// Hosts that may be oversubscribed ([Host.Oversubscribe]), such as a laptop, accept a run that
// needs more slots than all hosts of its class have together, once they are empty. Each gets a
// share of the tasks in proportion to its slots, which leaves no capacity for another run. The
// run waits and guards like any run. All of the hosts must allow oversubscription, and GPUs are
// never oversubscribed.
//
// # Elastic runs
//
// An elastic run has the same number of tasks on each of its hosts, and as many hosts as are
// free, within its bounds. It waits until its minimum is free and gets the most that fits. If
// that is less than its maximum, it is granted only after the minimum has been free for
// [Demand.JoinWait]; until then it guards every host that it could use. Later generations come
// with the bounds and the wait that the run has chosen for them.
//
// # Order
//
// Priority comes first, 1 before 5, then age. A run that does not fit guards each host that it
// could use and that no earlier run guards. A later run may use a guarded host only if it cannot
// delay the guarding run:
//
//   - If the end of each run on the host is known from its max_run_time, the guarding run starts
//     when enough of them have ended. Another run may use any capacity until then, and for longer
//     only what the guarding run will not need.
//   - Otherwise another run may use only what the guarding run could not use on the empty host.
//
// A run that could not start even if all ready hosts were empty guards nothing, because it waits
// for hosts rather than for other runs.
package fleet
