// Package rules decides for the queue of a run's closures what is called and when, which
// requests wait, and what they raise. It is pure: a [Queue] changes only by its methods, and
// [Queue.Actions] tells the workflow what to do. Its [State] is all that it keeps when the
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
// A batch is an activity on a task queue that every serving host polls: the server gives it to
// a host with a free slot, and again to any host when its heartbeat stops. There are about twice
// as many batches as slots. A function begins with one closure a batch, and the number doubles
// as long as calls are short. A host that finds a call to be long returns what waits behind it:
// the function has one closure a batch again, so that hosts do not wait for each other.
//
// The result of a batch may name closures that its host is still calling. Another batch, for
// the queue of that host, waits for them. So a call outlives an execution of the workflow
// and a host worker, and can be cancelled where it is.
//
// # Outcomes
//
// Value, error, input and cancelled end a closure. Otherwise:
//
//   - lost: its process ended during the call. It is put back, and after more than
//     [closure.MaxLosses] of them it is an error.
//   - unavailable: a task that it needs does not answer. The K-th report of the same task is an
//     error, and earlier ones put the closure back. Raising the error forgets the reports.
//   - a batch that failed, with its host: put back.
//
// What is put back comes first again.
//
// # Errors
//
//	      a closure fails           the next schedule, join or done
//	open ─────────────────► failed ────────────────────────────────► draining
//	  ▲                                                                  │
//	  └──────────────────────────────────────────────────────────────────┘
//	             nothing executes: that request raises the error
//
// The first error becomes the queue's. By itself it cancels nothing. The next schedule, join or
// done, or the oldest that already waits, starts a drain: waiting closures are cancelled, and so
// are batches. Closures that are put back are cancelled, too. When nothing executes, that request raises the
// error, which clears it together with all later errors. The closures of a schedule that raises
// are cancelled.
//
// A closure for a certain task is a pool's. It goes to the host of that task, and has no part in
// errors, drains and joins; when its process ends during the call, that is its error.
//
// # Clients
//
// A schedule waits for room, in the order of arrival. Closures in batches do not count. A
// request with more closures than the queue takes gets in one by one.
//
// The outcomes of a client's closures are kept until it has taken them. A client that has no
// other closures schedules one and waits for its outcome with the same request. Hosts get nothing new
// while too much is kept. A client that has taken nothing for a minute by then is forgotten with
// its outcomes: its process has probably ended.
package rules
