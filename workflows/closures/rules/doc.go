// Package rules decides which closures of a run's queue are called and when, which requests wait,
// and which errors they raise. It is pure. A [Queue] changes only through its methods, and
// [Queue.Actions] lists what the workflow must do. When the workflow continues as new, the queue
// keeps only its [State].
//
// # The life of a closure
//
//	schedule ──► waiting ──► in a batch ──► ended ──► taken
//	               ▲             │            ▲
//	               └─────────────┴────────────┘
//	           returned, lost,       value, error, input, cancelled,
//	           unavailable           or given up
//
// A batch is an activity on a task queue that every serving host polls. The server gives it to a
// host with a free slot. If that host's heartbeats stop, the server again gives the batch to any
// host with a free slot. There are about twice as many batches as slots. At first each batch
// contains one closure; the number doubles while calls are short. If a call is long, its host
// returns the closures behind it, and batches again contain one closure, so that hosts do not wait
// for each other.
//
// The result of a batch may name closures that its host is still calling. Another batch, sent to
// that host's own queue, waits for them. This way, a call can outlive a workflow execution and a
// host worker, and can be cancelled where it runs.
//
// # Outcomes
//
// The outcomes value, error, input and cancelled end a closure. The rest are handled as follows:
//
//   - lost: the process exited during the call. The closure is put back; after more than
//     [closure.MaxLosses] losses it fails.
//   - unavailable: a required task does not answer. The K-th report of the same task is an error,
//     and earlier reports put the closure back. Raising the error resets the reports.
//   - a batch failed, for example because its host was lost: its closures are put back.
//
// Closures that were put back are called first.
//
// # Errors
//
//	      a closure fails           the next new closures or join
//	open ─────────────────► failed ────────────────────────────────► draining
//	  ▲                                                                  │
//	  └──────────────────────────────────────────────────────────────────┘
//	             nothing executes: that client gets the error
//
// The first error becomes the queue's error, which does not yet cancel anything. The next request
// that contains closures or a join, or the oldest such request that is waiting, starts a drain. A
// drain cancels waiting closures, batches, closures that are put back, and new closures from that
// client. Once nothing is executing, the client receives the error among its outcomes, which clears
// this error and all later ones.
//
// A closure for a certain task belongs to a pool. It goes to that task's host, and is not involved
// in errors, drains and joins. If the process exits during the call, the closure fails.
//
// # Clients
//
// Requests are admitted in the order of arrival. A request's closures wait until all of them fit or
// the queue is empty. Closures in batches do not count toward the limit.
//
// A client sends one request at a time; a new request abandons the older one. The outcomes of a
// client's closures are kept until the client has taken them. While too many outcomes are kept,
// hosts do not receive new closures, and a client that has not taken any for a minute is forgotten
// with its outcomes, because its process has probably exited.
package rules
