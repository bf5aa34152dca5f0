// Package activities implements a host's activities for the ClusterRun workflow: it places tasks on
// a host, runs their processes, and reports how they ended.
//
// All activities are methods of [Host], one file each:
//
//	Reserve          reserves the host for tasks of a run: fetches shipped files, checks
//	                 programs and directories, leases ports, keeps the run's plan on disk
//	Prepare          sends the host the whole cluster, if it spans several hosts and rank 0 is reached
//	Deny             promises to extend no more leases of another host's tasks
//	Answer           only answers, so that the run knows that the host is back
//	RunTask          holds a lease on one task's process for as long as it lives
//	StopSilentTasks  stops tasks for their silence
//	StopTasks        stops processes whose RunTasks are being canceled
//	SealTasks        prevents further restarts
//	TellStopping     tells the tasks whether they stop together
//	CheckStart       checks whether a task can be started
//	SettleTasks      stops what remains of a generation that the run has lost sight of
//	Unreserve        frees what was reserved for a generation
//	Release          releases the host and returns every exit of every process
//	Notify           sends a notice about a run, possibly after it ended, to a webhook or command
//
// Activities that carry out operators' requests are in spec.Requests. Package hostapi defines the
// names, inputs and outputs of all activities.
//
// A host worker may be killed at any moment. State that must outlive it is kept by the supervisor
// (processes, exits, ports) or on disk (plans), never in memory here. A new [Host] over the same
// supervisor continues where the old one stopped.
//
// # Heartbeats
//
// Heartbeats go through the client instead of the activity's context. A failed SDK heartbeat
// cancels the context, so an outage of two seconds would look like a cancellation. With the client,
// only an answer stops RunTask: either a cancellation, or a report that the attempt is no longer
// valid. RunTask continues if the server does not answer. A task heartbeats every 1 to 8 s,
// depending on the size of its run, and always on whole seconds, so that a host with many tasks
// wakes up once a second for all of them.
//
// # Restarts
//
// A restart is another attempt of the activity. The failed attempt journals that the next process
// may start, then returns a retryable error with the delay; the next attempt finds the permission
// in the journal. An attempt that starts for another reason (a heartbeat timeout, a killed host
// worker) either adopts a living process or judges an exit that has not been judged yet. Nothing is
// started without permission in the journal, so no process is started twice by accident.
//
// # Taking over
//
// A host worker that is asked to exit fails its activities in a way that makes the server retry
// them immediately. If it is killed, the next host worker process fails them instead. If no process
// follows, the server retries the activities when it has received no heartbeat for 20 s, or for a
// minute in a large run. In each case the next host worker adopts the processes, which continue
// undisturbed.
//
// # The fence
//
// A process that may be started elsewhere lives only while its host has contact. The supervisor
// keeps the process's deadline on CLOCK_BOOTTIME: the send time of its own activity's last answered
// heartbeat, plus stop_after. The host worker renews the deadline after each answer, under the
// fence of its attempt, and an attempt needs an answer before it may start a process. So a host
// worker that was killed, is frozen, crashes repeatedly, waits for a connection or cannot log in
// does not extend the deadline. When the deadline passes, the supervisor stops the process (cause
// host-lost, reason cut-off). The deadline is per process rather than per run, because an answer
// for one task proves nothing about another task's closed activity. The deadline need not outlive
// the supervisor, since the processes die with the supervisor.
//
// The run measures the same times independently (lifecycle.Fence). It gives the host up if no host
// worker has picked up an activity's first attempt within that time. With on_disconnect: keep there
// is no deadline, and the run waits for its hosts indefinitely.
//
// With two bounds (package lease) the deadline is a third of the lease before its expiry, which
// leaves that third for the process to exit. An unanswered heartbeat is also sent to the run's
// other hosts ([hostservice.Witnesses]), and their answers also renew the deadline.
//
// # Processes without a lease
//
// Every 2 s the reconciler (reconcile.go) asks the server about each run that has processes but no
// lease on this host. It stops a process only if the process's run is closed or does not list the
// task's activity. In this way it finds a run that was terminated while the host worker was down.
package activities
