// Package closures lets a host's tasks call closures, which are registered functions with
// arguments that a coordinator has scheduled. A [Broker] mediates between a run's queue, which
// gives batches of closures to hosts, and the processes of its tasks, which request closures over
// the task API. It does not depend on Temporal and keeps nothing on disk.
//
//	     Run, with a batch           Next: a free slot
//	───────────────────────► queued ───────────────────► calling ──────► ended ──► Run
//	                           ▲                            │   outcome,
//	                           └────────────────────────────┘   lost
//	                        not received, or given back
//
// # Batches
//
// A host takes another batch when a slot is free ([Broker.Reserve]). Run returns when all closures
// of its batch have ended. If closures would wait for a long call, Run returns early, with the
// closures that no process has started and the calls that continue. Another batch, for this host
// only, then waits for these calls. The same happens when the queue cancels a batch, because of an
// error or to continue as new, and when the host worker stops. So a call belongs to its process,
// and only its outcome waits for a batch.
//
// # Processes
//
// A process sends its whole state with each request, and uses only the answer to its newest
// request. When its state changes, it aborts a waiting request. A closure that was sent to the
// process but that the process does not report is called again. So a lost answer does no harm, and
// answers need no acknowledgment. This also makes a broker replaceable. A new broker holds nothing,
// and processes of the old one report the closures and outcomes they hold.
//
// # Resources
//
// Per-worker resources are defined along with the closures that use them, and a process builds a
// resource when it first calls such a closure. Batches list the resources that are no longer
// needed, and the processes that built them drop them.
//
// # Ends
//
// An exiting process's calls are lost. If a cancelled call exceeds its grace, its process is
// restarted.
package closures
