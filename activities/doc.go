// Package activities implements the activities of a host for the ClusterRun workflow: it
// places tasks on a host, runs their processes, and reports how each one ended.
//
// All activities are methods of [Host], one file each:
//
//	Reserve          reserves the host for tasks of a run: fetches what the run ships, checks
//	                 programs and directories, leases ports, keeps the plan of the run on disk
//	Prepare          tells the host the whole cluster, if it spans several hosts and rank 0 is reached
//	Deny             promises to extend no more leases of tasks of another host
//	Answer           only answers, so that the run knows that the host is back
//	RunTask          holds a lease on the process of one task for as long as it lives
//	StopSilentTasks  ends tasks for their silence
//	SealTasks        restarts nothing any more
//	TellStopping     tells the tasks whether they stop together
//	CheckStart       checks whether a task could be started
//	SettleTasks      ends what is left of a generation that the run has lost sight of
//	Unreserve        gives back what was reserved for a generation
//	Release          releases the host and returns every exit of every process
//	Notify           sends a notice about a run, which may have ended, to a webhook or a command
//
// Those that carry out requests of operators are in spec.Requests. Package hostapi has the names,
// inputs and outputs of all.
//
// A host worker may be killed at any moment. State that must outlive it is kept by the
// supervisor (processes, exits, ports) or on disk (plans), never in memory here: a new [Host]
// over the same supervisor continues where the old one stopped.
//
// # Heartbeats
//
// Heartbeats go through the client instead of the activity's context. A failed heartbeat of the
// SDK ends the context, so a server that is away for two seconds would look like a
// cancellation. Through the client only an answer counts: either a cancellation, or that the
// server no longer knows the attempt. Without an answer RunTask continues. A task heartbeats
// every 1 to 8 s, depending on the size of its run, and always on whole seconds, so that a host
// with many tasks wakes up once a second for all of them.
//
// # Restarts
//
// A restart is another attempt of the activity. The failed attempt journals that the next
// process may start, then returns a retryable error with the delay; the next attempt finds
// the permission in the journal. An attempt that starts for another reason (a heartbeat
// timeout, a host worker that was killed) either adopts a living process or judges an exit
// that has not been judged yet. Nothing is started without permission in the journal, so
// nothing runs twice by accident.
//
// # Taking over
//
// A host worker that is asked to end fails its activities in a way that makes the server retry
// them at once. If it is killed, the next process of the host worker does that in its place. Without
// one, the server retries them when their heartbeats have been missing for 20 s, or a
// minute in a large run. Either way the next one adopts the processes, which did not notice.
//
// # The fence
//
// A process that may be started elsewhere lives only while its host has contact. The supervisor
// keeps a deadline for it on CLOCK_BOOTTIME: the time at which the last heartbeat of its own
// activity that the server answered was sent, plus stop_after. The host worker renews it after
// each answer, under the fence of its attempt, and a start needs an answer to the attempt that
// starts. So a host worker that was killed, is frozen, crashes repeatedly, waits for a
// connection or cannot log in does not extend the deadline: it passes, and the supervisor stops
// the process (cause host-lost, reason cut-off). The deadline is per process rather than per
// run, because an answer for one task says nothing about the closed activity of another. It
// need not survive the supervisor, since the processes die with the supervisor.
//
// The run counts on its own, with the same numbers (lifecycle.Fence). It gives the host up when
// the first attempt of an activity has not been picked up for that long. With on_disconnect:
// keep there is no deadline, and the run waits for its hosts without limit.
//
// With two bounds (package lease) the deadline is the end of the lease less a third, in which the
// process may end by itself. A heartbeat without an answer goes to the other hosts of the run
// (package witness), and their answers renew the deadline, too.
//
// # Processes without a lease
//
// Every 2 s the reconciler (reconcile.go) asks the server about the runs that have processes
// here without a lease. It stops a process only if its run is closed or does not list the
// activity of the task. This finds a run that was terminated while the host worker was down.
package activities
