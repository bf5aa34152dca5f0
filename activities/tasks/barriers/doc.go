// Package barriers connects a host's tasks to barriers that span hosts.
//
// A barrier is a name within one generation of a run. It has rounds, numbered from 0, and each
// round is a separate small workflow on the server (Barrier, by the rules of workflows/barrier). A
// task arrives by calling [Barriers.Arrive]. Calls by a host's tasks that arrive close together
// share one signal, and one wait for the workflow's result serves them all. The run's workflow is
// not involved.
//
// # Which round
//
// All hosts must agree on the open round's number without asking each other. The server decides,
// because a closed round's ID is never started again (signal-with-start with the policy "reject
// duplicate"), so the open round is the first one that is not closed, and an arrival at a closed
// round moves on to the next. Rounds advance only this way, as a host opens round n+1 only after
// the server has reported that n is closed.
//
// A host's stored number is only a starting point, and a number that is too low is safe: the host
// skips the closed rounds one after another. The number is kept in memory and in a small file in
// the state directory, which is written within a second and does not need fsync. The file matters
// for runs that outlive the server's retention. Once the server has forgotten the closed rounds, a
// host without a number would restart at 0. (A host that has lost its state directory has also
// lost its tasks, and the group continues in another generation.) The numbers of a run's 1,024
// most recently used barriers are kept.
//
// # No arrival counts twice
//
// A signal may be delivered more than once, a host may fail between the signal and its answer, and
// the answer may never reach the process. In each case the process retries. The key, which the
// process creates once per call, keeps it from arriving in the next round, because a closed round
// lists all answered keys.
//
//   - The round is open: the same key is the same arrival.
//   - The round was closed in between: it lists the key, and the call is answered from the list
//     instead of moving on to the next round.
//   - The host does not remember the task because it was restarted: it reads the lists of closed
//     rounds backwards until it finds one that includes the task. That round decides, because a
//     task arrives again only after it was answered, or in another process with a key that is
//     not listed. A released round's list contains all participants, so only broken rounds are
//     passed on the way: usually one list is read, once after a restart.
//   - The server lost the arrival in a power cut: if a round stays open, the host asks it for
//     its arrivals after a quarter of a second and then every minute, and resends the missing
//     ones.
//   - The round was terminated and left no list: tasks known to have been in it get the
//     answer that it is broken; the remaining tasks move on to the next round.
//
// # Withdrawing
//
// A call is withdrawn when its context is cancelled, because its process has exited or no longer
// waits. A dead process therefore does not count, and its replacement finds the round open. When
// the host worker stops, it calls [Barriers.Close] first, which does not withdraw anything: the
// tasks are still running, and arrive again through the next host worker.
package barriers
