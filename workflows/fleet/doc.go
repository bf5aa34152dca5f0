// Package fleet decides which pending run gets which hosts of a queue, and when. It is pure: events
// go in and actions come out, which the workflow Fleet carries out.
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
// When a host worker joins, it reports its resources ([Host]) and what runs hold on it. This
// replaces the fleet's records, except for grants that are not placed yet, which still count. While
// a host worker is alive, another one with the same name is refused ([Machine.CheckJoin]). Runs
// keep what they hold on a silent host, but the host does not get new tasks until it joins again. A
// cordon belongs to the name, and outlives the host worker. A host with a failing check also counts
// as cordoned. Its host worker joins again whenever a check's result changes, so the host need not
// be uncordoned. A process that survives SIGKILL keeps its slots even after its run has finished
// ([Holding.Stuck]), until its host joins without it.
//
// # Runs
//
// A run requests capacity for all of its tasks, and is granted all or nothing. The hosts have the
// final say. If one refuses, the run returns the whole grant with the reason, waits again without
// losing its place by age, and avoids that host for some seconds (minutes after repeated refusals),
// unless the host joins again. A demand that the fleet could never meet, even with all hosts empty,
// is refused as soon as no more hosts are expected, which is half a minute after the last host
// joined.
//
// A run keeps the capacity of its last generation for the next one. If the next generation does not
// fit, the run must release that capacity ([Return]). So no run holds hosts while it waits for
// more, and runs never wait for each other in a circle.
//
// # Places
//
// A run gets as few hosts as possible, and those that fit it best. For example, tasks without GPUs
// avoid hosts with GPUs. If a number of hosts is set, the tasks are dealt out evenly, and with
// [Demand.Spread] one by one over as many hosts as possible. Hosts of the last generation come
// first, in its order, so that rank 0 stays on its host. The search is greedy: if tasks need
// different numbers of GPUs, it may miss places that exist, but [Machine.Impossible] then reports
// this before the run starts to wait.
//
// # More tasks than slots
//
// Hosts that may be oversubscribed ([Host.Oversubscribe]), such as a laptop, accept a run that
// needs more slots than all hosts of its class have together, once they are empty. Each gets a
// share of the tasks in proportion to its slots, which leaves no capacity for another run. The run
// waits and guards hosts like any other. All hosts of the class must allow oversubscription. GPUs
// are never oversubscribed.
//
// # Elastic runs
//
// An elastic run has the same number of tasks on each of its hosts, and as many hosts as are free,
// within its bounds. It waits until its minimum is free, and then gets as many hosts as fit. If
// these are fewer than its maximum, the grant is delayed until the minimum has been free for
// [Demand.JoinWait]; until then, the run guards every host that it could use. For later
// generations, the run chooses the bounds and the wait.
//
// # Order
//
// Runs are ordered by priority, 1 before 5, and then by age. A run that does not fit guards each
// host that it could use, unless an earlier run already guards it. A later run may use a guarded
// host only if it cannot delay the guarding run:
//
//   - If the latest end of every run on the host is known from max_run_time, the guarding run
//     starts when enough of these runs have finished. Until that time, another run may use any
//     capacity; beyond it, only what the guarding run will not need.
//   - Otherwise, another run may use only what the guarding run could not use even if the host were
//     empty.
//
// A run that could not start even if all ready hosts were empty does not guard any host, because it
// waits for hosts rather than for other runs.
package fleet
