// Package closures lets the tasks of a host call closures: functions that they have
// registered, with arguments that a coordinator has scheduled. A [Broker] stands between the
// queue of a run, which gives batches of closures to hosts, and the processes of its tasks, which
// ask for closures over the task API. It knows nothing of Temporal and keeps nothing on disk.
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
// of its batch have ended. When a call takes so long that others would wait for it, Run returns
// earlier, with the closures that no process has begun and the calls that continue. Another
// batch, for this host only, then waits for these calls. The same happens when the queue cancels
// a batch, because of an error or to continue as new, and when the host worker ends. So a call
// belongs to its process, and only its outcome waits for a batch.
//
// # Processes
//
// A process sends its whole state with each request, and takes only the answer to its newest one:
// when its state changes, it breaks off a request that waits. A closure that it was given and does
// not report is called again. So a lost answer loses nothing, and no answer is acknowledged.
// This also makes a broker replaceable. A new broker holds nothing; processes that knew the
// old one report what they hold and its outcomes.
//
// # Resources
//
// The definitions of per-worker resources come with the closures that use them, and a process
// builds a resource when it first calls such a closure. Batches say which resources are no longer
// needed, and the processes that have built them drop them.
//
// # Ends
//
// The calls of a process that ends are lost. A cancelled call has a grace; after that its process
// is restarted.
package closures
