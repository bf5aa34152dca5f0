// Package workers is the host worker as a library.
//
// A host worker consists of two processes. The first, the supervisor, is the parent of all others.
// It is a small separate program without network connections, starts the tasks' processes, and
// outlives the second process; see package supervise, and [Supervisor] for its settings. The second
// process is [Side]. It polls Temporal, executes workflows and activities, and may be killed and
// restarted at any moment without a task noticing.
//
// A host worker's [Role] decides whether it serves workflows, tasks, or both.
//
// The supervisors of `clusterrun run` share a process for their sides, which stays connected to the
// server ([Connection.Serve]; package homeworker). Within that process, each has a private queue
// and host. The supervisor that `clusterrun submit` starts uses the same process, but serves the
// public queue. If the process dies, each supervisor starts its own Side.
//
// A run on a single host has a local queue ([spec.LocalQueue]). One worker serves its workflow and
// its activities, so the server can answer a workflow task with the activities that it scheduled.
//
// # One host worker of a name
//
// Tasks that are pinned to a name would go to any host worker of that name. So before a host worker
// accepts tasks, it looks for host workers that poll its name's queue, and sends them an activity
// on their own queues to see whether they are running. `clusterrun worker` is refused if one of
// them answers, and the error names that one's instance. A side that finds such a host worker later
// keeps its tasks but accepts no new tasks until the name is free.
//
// # Without the server
//
// If the server does not accept the request to stop a run of `clusterrun run` within 5 s, or the
// run does not react to it, the command orders the supervisor, by a line on the lifeline, to stop
// everything. The supervisor uses the spec's signals and graces, starts nothing more and exits. The
// exits are read from the supervisor's journal, and the run ends on the server when the next
// command reaches the server.
package workers
