// Package rules decides what happens in a queue of closures: who gets which, what
// becomes of those that fail or get lost, and who is told of an error. It is the queue of
// TensorFlow's ClusterCoordinator as a pure state machine. A [Queue] is told of requests,
// of the tasks that serve and of what hosts have returned; it answers with [Call] values
// and with [Action] values for the workflow to carry out. It has no context, no clock and
// no I/O, and the same always brings the same. So the rules can be read, tested by scripts
// (testdata/scripts) and fuzzed.
//
//	Schedule, Join, Done
//	    │
//	    ▼    room for it          Dispatch           LeaseEnded, with an outcome
//	  line ─────────────► queued ─────────► held ────────────────────────────────► ended
//	    │                  │  ▲  by a host   │                                       ▲
//	    ▼                  │  └──────────────┘                                       │
//	  Call                 │     put back                                            │
//	                       └─────────────────────────────────────────────────────────┘
//	                           Decide: cancelled, given up
//
// # Order
//
// Closures go out in the order of scheduling, which is the order of IDs. A closure that was
// put back keeps its place. One that only a certain task may call
// waits until that task serves, and keeps nobody waiting. The others go to the hosts where
// a task has registered their function. A function that no task has ever registered may
// go anywhere: its call fails with just that, while waiting for somebody might never end.
//
// # Leases
//
// A [Dispatch] is a lease on closures: an activity on the queue of a host worker. It
// returns the outcomes of some and leaves the rest with the host. The rest is leased
// again, with the next closures for that host, or by itself if there are none. The host
// knows its closures by ID and goes on with them. What comes back a third time without
// having ended is slow and leased apart, because otherwise every quick one that ends
// would send it and its arguments once more. A lease says which of its closures the host
// was told to cancel, because what it was told may have been lost with a host worker.
//
// How many closures a host may hold is its window. It begins at the host's slots, so a few
// closures are spread over all hosts. It doubles when a lease comes back from a host that
// was idle although its window was full, and more is waiting; so a flood goes out in
// hundreds. It halves when a host finishes little of what lies with it. What lies behind a
// long call for a second the host gives back, and its window is its slots again: another
// host may be idle. Hosts are filled
// evenly, the one with least for its slots first. A host whose lease was lost is doubted
// until it is heard of: it gets a single closure when nobody else has room. When that is
// lost, too, it gets nothing until it says again that tasks serve there.
//
// # Resources
//
// A per-worker resource is a definition that travels with the leases of closures that
// use it; what processes build of it lives there. The client that has created
// it releases it when it needs it no more, or the host of its task does when its process
// has ended. From then on closures with it are refused,
// and with the last one that has ended the definition goes. IDs are never given
// twice, so a host can be told with ranges of IDs. It is told with its next lease,
// and by a [ReleaseOn] where it has none, until it has said that it has heard: a lease
// that is lost leaves it to be told again, and a new broker is told all that is gone, as
// is a host that begins to serve.
// Only the span of the IDs that a host was given, and of those it has to hear of, is kept.
//
// # Outcomes
//
// A closure ends once, with its first final outcome, from whichever lease. Those who follow
// the history read it the same way. What is decided here and not by a host is a [Decide],
// which the workflow writes into the history, too.
//
//   - value, error, input, cancelled: the end.
//   - lost: the process ended during the call. A closure under which more processes have
//     ended than it may take along (max_losses) is an error. One that had not begun is
//     just put back.
//   - unavailable: a task that it needs does not answer. The K-th report of the same task
//     is an error, those before put it back. After the error has been raised the
//     reports count anew.
//   - a lease that is lost with its host, and an ID that the host does not know: put back.
//
// # Errors
//
//	      a closure fails          the next schedule, join or done
//	open ─────────────────► failed ────────────────────────────────► draining
//	  ▲                                                                 │
//	  └─────────────────────────────────────────────────────────────────┘
//	            nothing executes: that request raises the error
//
// The first error becomes the queue's, and cancels nothing by itself: hosts
// go on taking what is queued. The next schedule, join or done, or the oldest that waits
// already, starts a drain. What is queued is cancelled, hosts are told to cancel what they
// hold, nothing is given out, and all other requests wait. When nothing executes any
// more, that request gets the error. The error is cleared with all
// that came after it, and a schedule that raises has its own closures
// cancelled. What is put back while there is an error is cancelled.
//
// The seed has one coordinator, and here may be several clients. Of the one whose request
// began the drain only that request gets the error. But the drain has cancelled what the
// others had scheduled, and a client may be gone whose request still waits, as that of a
// coordinator that was killed while it joined. So each other client that waits, or has
// scheduled closures since nothing was open for the last time, is owed the error: its
// first request from then on raises it.
//
// Each error that is raised to a client begins an epoch of that client. What it had
// scheduled before it could know, and what arrives only now, belongs to the old one and
// is cancelled.
//
// Detached closures have no part in this: no join waits for them, a
// drain leaves them alone, and their errors are their own. A request that brings only
// detached closures neither raises nor waits behind a join. A join or done that is about
// all waits for detached closures, too.
//
// # Keys
//
// A closure with the key of another one is that closure, also when it has ended, unless it
// was cancelled. One that has failed fails again, as if it had been called at once: its
// error becomes the queue's, whose text the history has. With retry it is another closure.
// Keys are kept for as long as the run lives, up to a number of bytes; a request that has
// others then is refused.
//
// # Waiting
//
// A full queue makes schedule wait for room, in the order of asking. As in the seed, what
// is being called does not count, however many tasks there are; what a host was given
// ahead, beyond its slots, does. A request
// with more closures than the queue takes gets in one by one. While a join
// waits, schedules of the same client after it wait, too, so that it ends although other
// threads go on scheduling; other clients go on, and their closures are waited
// for. A closure that joins waits for itself, unless it is detached. Putting back never
// waits. A join or done whose client goes away may be withdrawn.
//
// A client numbers its requests, and one that is sent again is the same request: the
// latest answers are kept. A [Queue.Snapshot] takes along what has done something: queued
// and held closures, answers, a drain. Requests that just wait are not in it; their clients
// ask again.
//
// Nothing but its key is kept of a closure that has ended, and everything that is kept is bounded.
package rules
