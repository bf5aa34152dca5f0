// Package barriers brings the tasks of one host to barriers that span hosts.
//
// A barrier is a name in one generation of a run. It has rounds, numbered from 0,
// and each round is a small workflow of its own on the server (Barrier, by the
// rules of workflows/rendezvous). A task that arrives is a call of
// [Barriers.Arrive]. The calls of a host's tasks that come within a moment are one
// signal; one wait for the workflow's result serves them all. The run's own
// workflow is not touched.
//
// # Which round
//
// All hosts have to agree on the number of the open round without asking each
// other. The server decides: a round that has closed is never started again under
// its ID (signal-with-start with the policy "reject duplicate"), so the round open
// is the first that is not closed, and an arrival at one that is closed goes on to
// the next. There is no other way to move on: a host opens round n+1 only after it
// was told that n is closed.
//
// The number that a host keeps is only a place to begin, and one that is too low
// is safe: the rounds between are found closed, by doubling steps and halving. It is
// in memory, and in a small file in the state directory, written within a second;
// it needs no fsync. The file matters for runs that outlive the server's
// retention: whoever remembers nothing finds nothing closed where the server has
// forgotten. (A host that has lost its state directory has lost its tasks too, and
// the group goes on in another generation.) Of one run the 1,024 barriers that
// were used last are remembered; of another the server is asked.
//
// # Nobody arrives twice
//
// A signal may be delivered more than once, a host may die between the signal and
// its answer, the answer may never reach the process. In each case the process
// calls again. What keeps it from arriving in the next round is the key, which
// it makes once for each call: a round closes with the keys of all the arrivals it
// answers.
//
//   - The round is open: the same key again is the same arrival again.
//   - The round was closed in between: it lists the key, and the call is answered
//     from the list instead of going on to the next round.
//   - A host that does not remember the task (it was restarted) reads the lists of
//     closed rounds backwards, until it finds one the task was in. That one
//     decides, because a task arrives again only after it was answered, or
//     in another process, whose key is in no list. All participants are in the list
//     of a released round, so only broken rounds are passed on the way, and
//     usually one list is read, once after a restart.
//   - The round did not hear of it (the server lost its last moments in a power
//     cut): a round that stays open is asked whom it has, after a quarter of a
//     second and then every minute, and is told again.
//   - The round was ended by force and left no list: who is known to have been in it
//     is told that it is broken, others go on to the next one.
//
// # Going away
//
// A call whose context ends is taken back: its process has ended, or does not wait
// any more. So who is dead does not count, and the process that is started in its
// place finds the round open. [Barriers.Close] comes first when the host worker
// ends, and takes nothing back: the tasks are still there, and arrive again at the
// host worker that comes next.
package barriers
