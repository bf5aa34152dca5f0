// Package closurequeue is the client of a queue of closures, the workflow
// ClosureQueue: it schedules in batches, waits, and follows the history of the
// queue for the values.
//
//	Schedule ──► pending ──one update at a time──► queue (workflow)
//	                                                 │ leases, whose results
//	Remote.Wait ◄── outcomes ◄── long poll of ──── its history
//
// A [Queue] has at most one request to schedule on its way. What is scheduled in the
// meantime goes together with the next one, so that a lone closure leaves at once
// and a flood leaves in hundreds. Requests are numbered, and one whose answer got
// lost, with a connection, a server or an execution of the queue, is sent again.
//
// Values come from the history: a result of RunClosures has the outcomes of calls,
// and a marker those that the queue decided by itself. The first final outcome of a
// closure in the order of the history is its end. [Queue.Fetch] finds values of any
// age there, as long as the server keeps it.
package closurequeue
