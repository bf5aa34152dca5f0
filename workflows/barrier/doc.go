// Package barrier decides what happens in one round of a barrier. It is a pure state machine. A
// [Round] receives an [Event] and returns answers for the arrivals that no longer wait. It does not
// use a context, clock or I/O.
//
//	               all participants are there
//	waiting ──────────────────────────────────► released
//	 │  ▲ │
//	 └──┘ │ the earliest deadline passes, a missing participant has ended for
//	arrive,│ good, the run or the round itself is over
//	withdraw
//	      └───────────────────────────────────► broken
//
// A barrier holds every participant until all have arrived. Rules:
//
//   - The round belongs to the barrier, not to a process. An arrival is a task and a key, which
//     the process creates for one call. A repeated key is the same arrival. A different key of an
//     arrived task joins the round: it comes from another process or thread of the task.
//   - An arrival is withdrawn if its process exits before the release. A restarted process finds
//     the round still open; its predecessor did not count as present while it was dead.
//   - A timeout breaks the round for all, as in Python's threading.Barrier, because the participant
//     that gave up will not come, so its peers would wait forever. Each arrival may have a timeout.
//     The earliest counts, from when the round received it. A repeated arrival does not extend it.
//   - A missing participant that has ended and will not return breaks the round. One that ended
//     after its arrival does not, because it has done its part.
//   - All arrivals must name the same participants. Otherwise the arrival is refused, and the
//     round continues without it.
//   - An arrival may carry a value, a string for all participants. A released round returns the
//     values of all its tasks, and for a task with several arrivals the last one. Their total
//     size is limited; an arrival that would exceed the limit is refused.
//   - A round closes once. An arrival at the moment of closing gets the same result. A broken round
//     stays broken; the next arrival opens a new round for those that retry. (threading.Barrier
//     stays broken until it is reset, which no program could do for this barrier.)
package barrier
