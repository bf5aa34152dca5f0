// Package closurequeue is the client of a queue of closures, the workflow ClosureQueue. It
// schedules closures in batches, waits for them, and follows the history of the queue to get
// their values.
//
//	Schedule ──► pending ──one update at a time──► queue (workflow)
//	                                                 │ leases, whose results
//	Remote.Wait ◄── outcomes ◄── long poll of ──── its history
//
// A [Client] retries each request until the queue answers it, and reads the history. Callers
// have names and number their requests, so a request stays the same if another host sends it
// again. By [Client.Answer] a host answers the programs in its tasks, which outlive the host
// worker, and a command answers a program by lines. For each program the client keeps only a
// feed, a part of the history that was read ahead.
//
// A [Queue] is for a program that uses the client itself. It has at most one schedule request
// in flight. Closures that are scheduled in the meantime are sent with the next request, so a
// single closure leaves at once and a flood leaves in batches of hundreds.
//
// A per-worker resource exists until its creator has released it and the last closure that
// uses it has ended. A client sends a release only after the queue has answered for all
// closures scheduled before it, and sends several releases together. When a client ends, its
// remaining resources are released. If a program is killed, its host releases them once the
// next process of the task has started or none will; the resources of a program outside the
// run stay until the run ends.
//
// Values come from the history: a result of RunClosures has the outcomes of calls, and a
// marker has the outcomes that the queue decided itself. The first final outcome of a closure
// in the order of the history is its end. [Client.Find] finds values of any age there, as
// long as the server keeps the history. A follower begins at a [Position] from before the
// first closure was scheduled, so that it misses no end.
package closurequeue
