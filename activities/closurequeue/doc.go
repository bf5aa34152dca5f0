// Package closurequeue is the client of a queue of closures, the workflow
// ClosureQueue: it schedules in batches, waits, and follows the history of the
// queue for the values.
//
//	Schedule ──► pending ──one update at a time──► queue (workflow)
//	                                                 │ leases, whose results
//	Remote.Wait ◄── outcomes ◄── long poll of ──── its history
//
// A [Client] sends requests as they are, until the queue answers them, and reads the
// history. It keeps nothing: who asks has a name and numbers its requests, so that a
// request is the same whoever sends it, and however often. This is what a host is for
// the programs in its tasks, which outlive it; a [Feed] is what it keeps of the
// history for each of them.
//
// A [Queue] is for a program that has the client itself. It has at most one request to
// schedule on its way. What is scheduled in the meantime goes together with the next
// one, so that a lone closure leaves at once and a flood leaves in hundreds.
//
// A per-worker resource is there until who has created it releases it, and the last
// closure with it has ended. A client says that only when the queue has answered for
// everything it had scheduled by then, and says it of several together. The end of a
// client releases what is left. A program that is killed leaves it to its host, which has
// it released when the next process of its task is there, or none will be; outside of the
// run, to the end of that.
//
// Values come from the history: a result of RunClosures has the outcomes of calls,
// and a marker those that the queue decided by itself. The first final outcome of a
// closure in the order of the history is its end. [Client.Find] finds values of any
// age there, as long as the server keeps it. Who follows begins at a [Position] that
// was there before the first closure was scheduled: nothing can end before it.
package closurequeue
