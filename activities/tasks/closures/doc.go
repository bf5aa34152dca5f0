// Package closures lets the tasks of a host call closures: functions that they have
// registered, with arguments that a coordinator has scheduled. A [Broker] stands between the
// queue of a run, which leases closures to the host, and the processes of its tasks, which
// ask for closures over the task API. It knows nothing of Temporal and keeps nothing on disk.
//
// # Leases
//
// A lease waits for outcomes; it does not own the calls. When a lease ends for any reason,
// running calls continue, waiting closures are still called, and outcomes are kept for the next
// lease that names them. Without such a lease they are forgotten after a minute. A lease
// returns when all of its closures have ended, and before that with those that have: early
// enough that a single closure does not wait, and late enough that a flood returns in hundreds.
// A long call holds nothing back.
//
//	     Lease: not held                 Next: free slots
//	───────────────────────► queued ──────────────────────► given
//	                          │  ▲                           │ │
//	         Cancel, forgotten│  └───────────────────────────┘ │ done, ended, lost
//	                          │     handed back, put back      ▼
//	                          └────────────────────────────► ended ──► Lease
//
// # Processes
//
// A process sends its whole state with each request, and the broker repeats what its answers
// contain until the process has it. A lost connection therefore loses no closure and no
// outcome, and nothing is doubled: each call has a number, and an outcome names its call.
// This also makes a broker replaceable. A new broker holds nothing; processes that knew the
// old one report what they hold and its outcomes, and the lease's next attempt finds it.
// Until all of those processes have reported, but for at most two seconds, a new broker gives
// out no closure that one of them may already hold.
//
// A process gets as many closures as it will call in about 20 ms, judged by how long its
// calls of a function have taken, and a single one while that is unknown. When a call turns
// out to be long, the process hands back the closures queued behind it.
//
// # Resources
//
// The definitions of per-worker resources come with the closures that use them, and a process
// builds a resource when it first calls such a closure. When a resource is no longer needed,
// the queue says so with a lease or by [Broker.Release]. Each answer to a process repeats that
// until the process acknowledges one; the process then drops its resource.
//
// # Ends
//
// Calls that a process had begun are lost with it. If the process held several short calls, it
// is unknown which of them it was executing: all are put back, and each is given by itself from
// then on. A closure that kills its processes is found that way, and the others are not blamed.
//
// A frozen process does not end. Once it has been silent for ten seconds, it no longer counts
// as serving, and other processes get the closures that it was given and has not begun. When it
// asks again, the answer cancels those that were given to others.
//
// If a call is cancelled or times out, its process is asked to end it, and is restarted if it
// does not. The outcome is reported only after the process has ended, so the function is no
// longer running by then. A cancellation may arrive before its closure, or before the process
// that holds the closure has returned; it is remembered. A lease may also name closures that
// are cancelled.
//
// The promise is at least once: a closure may be called again when a process or a host is
// lost, but never because a lease was lost.
package closures
