// Package barriers connects the tasks of one host to barriers that span hosts.
//
// A barrier is a name within one generation of a run. It has rounds, numbered from 0, and
// each round is a small workflow of its own on the server (Barrier, by the rules of
// workflows/barrier). A task arrives by a call of [Barriers.Arrive]. Calls of a host's
// tasks that arrive close together share one signal, and one wait for the workflow's result
// serves them all. The run's own workflow is not involved.
//
// # Which round
//
// All hosts have to agree on the number of the open round without asking each other. The server
// decides: a closed round is never started again under its ID (signal-with-start with the
// policy "reject duplicate"), so the open round is the first one that is not closed, and an
// arrival at a closed round moves on to the next. Rounds advance in no other way: a host opens
// round n+1 only after the server has reported that n is closed.
//
// The number that a host keeps is only a starting point, and a number that is too low is safe:
// the host passes the closed rounds one after the other. The number is kept in memory
// and in a small file in the state directory, which is written within a second and needs no
// fsync. The file matters for runs that outlive the server's retention: once the server has
// forgotten the closed rounds, a host without a number would start again at 0. (A host that has
// lost its state directory has lost its tasks too, and the group continues in another
// generation.) The numbers of the 1,024 most recently used barriers of a run are kept.
//
// # No arrival counts twice
//
// A signal may be delivered more than once, a host may die between the signal and its answer,
// and the answer may never reach the process. In each case the process calls again. The key,
// which the process makes once for each call, keeps it from arriving in the next round: a
// closed round lists the keys of all the arrivals it answers.
//
//   - The round is open: the same key is the same arrival.
//   - The round was closed in between: it lists the key, and the call is answered from the
//     list instead of moving on to the next round.
//   - The host does not remember the task because it was restarted: it reads the lists of
//     closed rounds backwards until it finds one with the task in it. That round decides,
//     because a task arrives again only after it was answered, or in another process, whose
//     key is in no list. The list of a released round has all participants, so only broken
//     rounds are passed on the way: usually one list is read, once after a restart.
//   - The server lost the arrival, because a power cut took its last moments: if a round
//     stays open, the host asks it for its arrivals after a quarter of a second and then
//     every minute, and sends the missing ones again.
//   - The round was terminated and left no list: tasks that are known to have been in it get
//     the answer that it is broken; others move on to the next round.
//
// # Withdrawing
//
// A call whose context ends is withdrawn: its process has ended or no longer waits. A dead
// process therefore does not count, and the process that replaces it finds the round open.
// When the host worker ends, it calls [Barriers.Close] first, which withdraws nothing: the
// tasks are still there, and arrive again through the next host worker.
package barriers
