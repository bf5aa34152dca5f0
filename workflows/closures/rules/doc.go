// Package rules has the rules of a queue of closures: which host gets which closure, how failed
// and lost closures are treated, and which request raises an error. It is the queue of
// TensorFlow's ClusterCoordinator as a pure state machine. The workflow passes requests,
// messages of hosts and results of leases to a [Queue], which answers with [Call] values and
// with [Action] values for the workflow to carry out. It has no context, no clock and no I/O,
// and equal calls have equal results. So the rules can be read, tested by scripts
// (testdata/scripts) and fuzzed.
//
//	Schedule, Join, Done
//	    │
//	    ▼    room for it          Dispatch           LeaseEnded, with an outcome
//	waitlist ─────────────► queued ─────────► held ────────────────────────────────► ended
//	    │                  │  ▲  by a host   │                                       ▲
//	    ▼                  │  └──────────────┘                                       │
//	  Call                 │     put back                                            │
//	                       └─────────────────────────────────────────────────────────┘
//	                           Decide: cancelled, given up
//
// # Order
//
// Closures go out in the order of scheduling, which is the order of IDs. A closure that was put
// back keeps its place. One that only a certain task may call waits until that task serves, and
// blocks no other. The rest go to hosts where a task has registered their function. A function
// that no task has registered so far may go anywhere: its call fails with that error, while
// waiting for it might never end.
//
// # Leases
//
// A [Dispatch] leases closures to a host, as an activity on the task queue of a host worker. It
// returns the outcomes of some and leaves the rest with the host. The rest is leased again,
// with the next closures for that host or separately. The host knows its closures by ID and
// continues with them. A closure that comes back three times without having ended is slow, and
// gets a lease of its own: otherwise each quick one that ends would send it and its arguments
// again. A lease names the closures in it for which the host had a request to cancel, because
// the host worker may have been restarted since.
//
// The window of a host bounds the closures that it holds. It begins at the host's slots, so
// a few closures are spread over all hosts. It doubles when a lease returns from a host that
// was idle although its window was full, if more is queued; so a flood goes out in hundreds.
// It halves when a host ends little of what it holds. Closures that wait behind a long call
// for a second come back, and the window is set to the slots: another host may be idle.
// Hosts are filled evenly, by what they hold for each slot. After a lost lease a host is
// doubted until its next message: it gets a single closure if no other host has room. If
// that is lost as well, it gets nothing until it reports serving tasks again.
//
// # Resources
//
// The definition of a per-worker resource travels with the leases of closures that use it.
// Processes build it, and keep what they have built. The client that created a resource
// releases it, or the host of its task does after the process has ended. From then on closures
// with it are refused, and after the last one has ended the definition is dropped. IDs are
// never reused, so hosts receive ranges of IDs: with a lease, or by a [ReleaseOn] if a host has
// none. They are repeated until the host has acknowledged them, and again after a lost lease or
// a restart of the host worker. Only the span of the IDs that a host was given, and of the IDs
// that it has not acknowledged, is kept.
//
// # Outcomes
//
// A closure ends once, with its first final outcome, from any lease. Readers of the history
// follow the same rule. The queue's own decisions are a [Decide], which the workflow records in
// the history as well.
//
//   - value, error, input, cancelled: the end.
//   - lost: the process ended during the call. After more than ten losses, or after one if
//     only a certain task may call it, the closure is an error. A call that had not begun is put back and does not count as a loss.
//   - unavailable: a task that it needs does not answer. The K-th report of the same task is
//     an error, and earlier ones put the closure back. Raising the error resets the count.
//   - a lease that is lost with its host, or an ID that the host does not know: put back.
//
// # Errors
//
//	      a closure fails          the next schedule, join or done
//	open ─────────────────► failed ────────────────────────────────► draining
//	  ▲                                                                 │
//	  └─────────────────────────────────────────────────────────────────┘
//	            nothing executes: that request raises the error
//
// The first error becomes the queue's. By itself it cancels nothing: hosts continue to take
// queued closures. The next schedule, join or done, or the oldest that already waits, starts a
// drain: queued closures are cancelled, hosts receive requests to cancel the closures that they
// hold, nothing is given out, and other requests wait. When nothing executes, that request
// raises the error, which clears it together with all later errors. The closures of a schedule
// that raises are cancelled, and so are closures that are put back during an error.
//
// TensorFlow has one coordinator; here several clients may share a queue. Only one request of
// the client that began the drain raises the error. But the drain has cancelled closures of
// other clients, too, and the request that raises may be of a client that is gone, such as a
// coordinator that was killed while it joined. So the error stays pending for each other client
// that waits, or has scheduled closures since nothing was open: its first request from then on
// raises it.
//
// Each error that is raised to a client begins an epoch of that client. Closures that it
// scheduled before it could know of the error belong to the old epoch, and are cancelled.
//
// Closures that only a certain task may call are detached, and have no part in this: joins do
// not wait for them, a drain does not cancel them, and their errors are only their own. A
// request with only detached closures neither raises nor waits for a join.
//
// # Waiting
//
// A schedule waits while the queue is full, in the order of arrival. As in TensorFlow, closures
// that are being called do not count. Closures that a host holds beyond its slots do. A request
// with more closures than the queue takes gets in one by one. While a join waits, later
// schedules of the same client wait, too, so that it ends although other threads keep
// scheduling; other clients may schedule, and the join waits for their closures. A closure that
// joins waits for itself, unless it is detached. Putting back never waits. A join or done may
// be withdrawn when its client goes away.
//
// A client numbers its requests. A request that is sent again gets the same answer; the latest
// answers are kept. [Queue.Snapshot] keeps the effects of requests: queued and held closures,
// answers, a drain. Requests that only wait are not in it, and their clients send them again.
//
// Of a closure that has ended nothing is kept, and all that is kept is bounded.
package rules
