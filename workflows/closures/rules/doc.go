// Package rules decides for a run's closure queue what is called and when, which requests wait, and
// which errors they raise. It is pure. A [Queue] changes only through its methods, and
// [Queue.Actions] lists what the workflow must do. Its [State] is all that it keeps when the
// workflow continues as new.
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
// host with a free slot, and again to any host if its heartbeat stops. There are about twice as
// many batches as slots. There is one closure per batch at first, and the number doubles while calls
// are short. If a call is long, its host returns the closures behind it, and there is one closure per
// batch again, so that hosts do not wait for each other.
//
// The result of a batch may name closures that its host is still calling. Another batch, for that
// host's queue, waits for them. So a call outlives a workflow execution and a host worker, and can
// be cancelled where it runs.
//
// # Outcomes
//
// Value, error, input and cancelled end a closure. Otherwise:
//
//   - lost: its process exited during the call. The closure is put back, and fails after more
//     than [closure.MaxLosses] losses.
//   - unavailable: a required task does not answer. The K-th report of the same task is an error,
//     and earlier reports put the closure back. Raising the error resets the reports.
//   - a batch that failed, with its host: its closures are put back.
//
// Returned closures come first.
//
// # Errors
//
//	      a closure fails           the next new closures or join
//	open ─────────────────► failed ────────────────────────────────► draining
//	  ▲                                                                  │
//	  └──────────────────────────────────────────────────────────────────┘
//	             nothing executes: that client gets the error
//
// The first error becomes the queue's, which cancels nothing yet. The next request with closures or
// a join, or the oldest waiting one, starts a drain, which cancels waiting closures, batches,
// closures that are put back, and that client's new closures. When nothing executes, the client gets
// the error among its outcomes, which clears it together with all later errors.
//
// A closure for a certain task belongs to a pool. It goes to that task's host, and does not
// participate in errors, drains and joins; if its process exits during the call, that is its
// error.
//
// # Clients
//
// A request's closures wait until all of them fit, in the order of arrival, or the queue is empty.
// Closures in batches do not count.
//
// A client sends one request at a time, and abandons an older one. The outcomes of its closures are
// kept until it has taken them. Hosts do not get new closures while too many outcomes are kept. A
// client that has by then taken nothing for a minute is forgotten with its outcomes, because its
// process has probably exited.
package rules
