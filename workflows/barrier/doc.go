// Package barrier decides what happens in one round of a barrier. It is a pure state machine: a
// [Round] takes an [Event] and returns answers for the arrivals whose waiting is over. It has
// no context, no clock and no I/O.
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
//   - The round belongs to the barrier, not to a process. An arrival is a task and a key, which the process
//     makes for one call. The same key again is the same arrival. Another key of a task that has arrived
//     joins the round: it comes from another process or thread of the task.
//   - An arrival whose process ends before the release is withdrawn. A process that was restarted then finds
//     the round still open; its predecessor did not count as present while it was dead.
//   - A timeout breaks the round for all, as in Python's threading.Barrier: the participant that gave up will
//     not come, so the others would wait for ever. Each arrival may have a timeout. The earliest counts, from
//     when the round learned of it. A repeated arrival does not prolong it.
//   - A missing participant that has ended and will not come back breaks the round. One that ended after its
//     arrival does not: it has done its part.
//   - All arrivals must name the same participants. An arrival that names others is refused, and the round
//     continues without it.
//   - An arrival may bring a value, a text for all the others. A round that is released has the values of all
//     its tasks, and for a task with several arrivals the last one. Their total size is bounded; an arrival
//     that would exceed the bound is refused.
//   - A round closes once. An arrival at the moment of closing shares its end. A broken round stays broken;
//     the next arrival opens a new one, in which those that try again meet. (threading.Barrier stays broken
//     until it is reset; no program could do that here.)
package barrier
