// Package activities implements the activities of a host for the ClusterRun workflow: it
// places tasks on a host, runs their processes, and reports how each ended.
//
// All activities are methods of [Host], one file each:
//
//	Reserve   takes tasks of a run: brings what it ships, checks the programs and
//	          directories, leases ports, keeps the plan of the run on disk
//	Prepare   tells the host the whole cluster, if it spans several hosts and rank 0 is reached
//	RunTask   holds a lease on the process of one task for as long as it lives
//	Control   a short operation: terminate, restart, signal, stacks, seal, check
//	Release   releases the host and returns every exit of every process
//
// A host worker may be killed at any moment. What must outlive it is with the supervisor
// (processes, exits, ports) or on disk (plans), never in memory here: a new [Host] over
// the same supervisor goes on where the old one was.
//
// # Heartbeats
//
// Heartbeats go through the client and not through the activity's context. A heartbeat of
// the SDK that fails ends the context, so a server that is away for two seconds would look
// like a cancellation. Through the client only an answer counts: a cancellation, or an
// attempt that the server does not know any more. Without an answer RunTask goes on. A
// task heartbeats every 1 to 8 s, depending on the size of its run and on whole seconds, so
// that a host with many tasks wakes up once a second for all of them.
//
// # Restarts
//
// A restart is another attempt of the activity. The failed attempt journals that the next
// process may start, then returns a retryable error with the delay; the next attempt finds
// the permission in the journal. An attempt that comes for another reason (a heartbeat
// timeout, a host worker that was killed) finds a living process and adopts it, or an exit
// that nobody judged yet and judges it. Nothing is started that the journal does not
// allow, so nothing runs twice by accident.
//
// # Taking over
//
// The tasks that the server has given to a side and that it has not answered are on disk,
// by their tokens: noted when the poll returns, removed when the answer is accepted. If
// the side is killed, the server would wait for 20 s; the next side answers in its place,
// with a failure that is retried at once, both activities and workflow tasks. What reaches
// a connection in the milliseconds in which its process dies is not noted and waits for its
// timeout. The notes are not synced, and a full disk costs only the wait.
//
// # The fence
//
// A process that may be started elsewhere lives only while its host has contact. The
// supervisor keeps a deadline for it on CLOCK_BOOTTIME: the time at which the last heartbeat
// of its own activity was sent that the server answered, plus stop_after. The side renews
// it after each answer, under the fence of its attempt, and a start needs an answer for
// the very attempt that starts. So the deadline is not extended by a side that was killed,
// is frozen, crashes again and again, waits for a connection or cannot log in: it passes,
// and the supervisor stops the process (cause host-lost, reason cut-off). The deadline is
// per process and not per run: an answer for one task says nothing about the closed
// activity of another. Nothing of it has to survive the supervisor, with which its
// processes die.
//
// The run counts from the other side, with the same numbers (lifecycle.Fence). Its first
// attempt that nobody takes for so long gives the host up. With on_disconnect: keep there
// is no deadline, and the run waits for its hosts without limit.
//
// # Processes without a lease
//
// Every 2 s the reconciler (reconcile.go) asks the server for the runs whose processes
// nobody holds a lease on. It stops a process only if its run is closed or does not list
// the activity of the task. So a run that was terminated while the host worker was down is
// found when that is back.
package activities
