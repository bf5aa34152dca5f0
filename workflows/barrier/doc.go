// Package barrier decides what happens in one round of a barrier. It is a pure
// state machine: a [Round] takes an [Event] and answers those whose waiting is
// over. It has no context, no clock and no I/O.
//
//	                all participants are there
//	 waiting ──────────────────────────────────► released
//	  │  ▲ │
//	  └──┘ │ the earliest deadline passes, a missing participant has ended for
//	arrive,│ good, the run or the round itself is over
//	withdraw
//	       └───────────────────────────────────► broken
//
// A barrier holds every participant until all have arrived. Rules:
//
//   - The round belongs to the barrier and not to a process. An arrival is a task
//     and a key; the key is the process's, made for one call. The same key again is
//     the same arrival again. Another key of a task that is there already joins
//     the round: it is another process of the task, or another thread.
//   - Who goes away before the release is withdrawn, so that a process that was
//     restarted finds the round it left still open, instead of having been
//     counted as there while it was dead.
//   - A timeout breaks the round for everybody, as in Python's threading.Barrier:
//     whoever gave up will not be there, so the others wait in vain. Each arrival
//     may have one; the earliest counts, from when the round heard of it. Hearing
//     of the same arrival again does not prolong it.
//   - A missing participant that has ended and will not come back breaks it. One
//     that ended after it had arrived does not: it has done its part.
//   - Everybody has to mean the same participants. An arrival for others is refused,
//     and takes nothing from the round, which goes on without it. So the later one
//     is told.
//   - An arrival may bring a value, a text for all the others: a round that is released
//     has those of all its tasks, of a task with several arrivals that of the last. They
//     are bounded together, and an arrival that would exceed the bound is refused.
//   - A round closes once. What arrives in the moment of closing shares its end.
//     A broken round stays broken; the next arrival after it opens a new one, in
//     which those who try again meet. (threading.Barrier stays broken until
//     somebody resets it; here nobody would be there to do that.)
package barrier
