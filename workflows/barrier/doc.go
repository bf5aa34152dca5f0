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
// A barrier holds every participant until all have arrived. Its rules are:
//
//   - The round belongs to the barrier, not to a process. An arrival consists of a task and a key,
//     which the process creates for one call. A repeated key is the same arrival. If a task that
//     has arrived sends a different key, this second arrival also joins the round, because it comes
//     from another process or thread of the task.
//   - An arrival is withdrawn if its process exits before the release. A restarted process finds
//     the round still open, because its dead predecessor did not count as present.
//   - A timeout breaks the round for all, as in Python's threading.Barrier, because the participant
//     that gave up will not come, and its peers would wait forever. Each arrival may have a
//     timeout, which starts when the round receives the arrival. The earliest deadline counts. A
//     repeated arrival does not extend it.
//   - If a missing participant has ended and will not return, the round is broken. A participant
//     that ended after its arrival does not break it, because it has done its part.
//   - All arrivals must name the same participants. An arrival that does not is refused, and the
//     round continues without it.
//   - An arrival may carry a value, a string for all participants. A released round returns the
//     value of each task; if a task has several arrivals, the last one's value counts. Their total
//     size is limited; an arrival that would exceed the limit is refused.
//   - A round closes once. An arrival that comes at that moment gets the same result. A broken
//     round stays broken; the next arrival opens a new round for those that retry.
//     (threading.Barrier stays broken until it is reset, which programs cannot do with this
//     barrier.)
package barrier
