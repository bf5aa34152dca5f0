// Package closures has the tasks of a host call closures: functions they have
// registered, with arguments that a coordinator has scheduled. A [Broker] stands
// between the queue of a run, which leases closures to the host, and the processes
// of its tasks, which ask for them over the task API. It knows nothing of Temporal
// and keeps nothing on disk.
//
// # Leases
//
// A lease waits for outcomes; it is not the parent of calls. When it ends, of
// whatever, calls go on, closures that wait are called, and outcomes are kept for the
// next lease that names them; after a minute without one they are forgotten. A lease
// returns when all of its closures have ended, and else with some: so soon that a lone
// closure costs no wait, and so late that a flood comes back in hundreds. What takes
// long holds nothing back.
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
// A process says with each request how it stands, all of it, and what an answer
// brings is sent again until the process has it. So neither closures nor outcomes get
// lost with a connection, and nothing is doubled: each call has a number, and an
// outcome is that of its call. The same makes a broker replaceable. A new one holds
// nothing; processes that knew the old one say what they hold and what came of it, and
// a lease's next attempt finds it. Until all of them have been heard of, for two seconds at
// most, it gives nothing to anybody that may be somebody's already.
//
// A process gets as much as it will call in about 20 ms, by how long its calls of a
// function have taken, and one where nobody knows. When a call turns out to be long,
// it hands back what is behind it.
//
// # Resources
//
// The definitions of per-worker resources come with the closures that use them, and a
// process builds them when it first calls one. When nobody needs a resource any more
// the queue says so, with a lease or a [Broker.Release], and every process is told with
// its next answer, until it has acknowledged one that has it. It drops what it has built.
//
// # Ends
//
// Calls that a process had begun are lost with it. Of several short ones that it had
// been given at once nobody knows which it was in; they are put back, each is given
// alone from then on, and so the one that ends its processes is found without
// blaming the others.
//
// A process that is frozen has no end. Others get what it was given and has not begun, once
// it has been silent for ten seconds, and it counts as serving no more. When it asks again
// it is told to leave what somebody else has.
//
// A call that is cancelled, or has run out of time, is told to end, and its process
// restarted where it does not. Its outcome comes when the process has ended: when it
// is there, the function is not running any more. A cancellation may come before the
// closure does, or before the process is back that has it; it is remembered, and what a
// lease names as cancelled is cancelled, too.
//
// At least once is the promise: a closure may be called again when a process or a
// host is lost, and never because a lease was.
package closures
