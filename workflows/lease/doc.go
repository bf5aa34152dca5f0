// Package lease decides how long a process may live on a host that may be cut off from the server,
// and when the run may start the process's task elsewhere. It is pure, without a clock or I/O.
// [Holder] is used by the process's host, [Witness] by each of that host's witnesses, and [Loss] by
// the run. When the run places a generation, it chooses at most [MaxWitnesses] of the generation's
// hosts as witnesses. A host that is itself a witness asks the other witnesses.
//
// # The rules
//
// A process runs under a lease, and is killed with SIGKILL when the lease expires. The host can
// extend the lease in two ways:
//
//  1. The server answers a heartbeat of the attempt that holds the task. The lease then lasts for
//     the short bound, counted from when the heartbeat was sent. A host without contact sends the
//     heartbeat to the witnesses, each of which forwards it. An answer that arrives through another
//     host also counts.
//  2. All witnesses answer that they could not forward the heartbeat. The lease then lasts for the
//     short bound, counted from when they were asked, but no longer than the long bound, counted
//     from the server's last answer.
//
// The run declares a task lost if all of these conditions hold:
//
//  3. The server has closed the last attempt, and the task's host either has not accepted a new
//     offer of the task or has not answered the question that precedes an offer. No offer is open
//     at this moment.
//  4. The time Passed has elapsed since the server could last have answered for the task.
//  5. One of the witnesses has promised not to give the answer of rule 2 for the offers so far, and
//     the time Passed has elapsed since that witness could last have given this answer.
//     Alternatively, the time LongPassed has elapsed since the server could last have answered.
//
// # Why nothing lives when a task is declared lost
//
// Suppose that a process is still alive. Its lease comes from rule 1 or rule 2.
//
// Rule 1: the heartbeat was sent before the server recorded it, and the server does not record
// heartbeats of a closed attempt. So the heartbeat was sent before the time in condition 4, and the
// lease has expired by the host's clock. It does not matter which route the heartbeat and its
// answer took or how long that lasted, because the lease counts from when the heartbeat was sent.
//
// Rule 2: all of a generation's witnesses are asked, so the witness of condition 5 was asked and
// answered afterwards, which is after the time from which the lease counts. Its last such answer
// came before its promise, and Passed has elapsed since. If there is no promise, the long bound,
// counted from the last answer, has passed. The rule and the condition agree because the same host
// gives both answers: as long as its answers keep a process alive, it has not promised; and once it
// has promised, its answers have expired.
//
// So it does not matter whether a host's answers are true. A host that has contact but denies it,
// or that loses contact a moment later, cannot break the argument. Only what a witness remembers
// matters. It writes a promise to disk before the run receives it. It keeps its other answers only
// in memory, so after a restart they count as given when the host worker started.
//
// # The cases
//
//   - Asymmetric cuts: if requests arrive but their answers do not, the host's leases are not
//     extended, and the run waits longer. Each direction of each link may fail independently.
//   - Frozen processes: an answer that is read late extends a lease only up to a time that was
//     fixed when the question was sent. The supervisor keeps the deadline on a clock that runs
//     while the machine is suspended. A frozen supervisor cannot kill; every kind of lease has this
//     limit.
//   - Clocks of different speed: only durations are compared. Passed allows for one percent on
//     the host and one percent on the witness.
//   - Returning hosts: a host that accepts an offer has contact, and no promise covers the new
//     offer. A host that returns later is told that its attempt is gone.
//   - A network that is split in two: if one half contains the server, the other half lacks the
//     answers of the witnesses in the first half, and stops after the short bound. If neither half
//     contains the server, both stop, since each lacks answers from the other. If all witnesses are
//     in one half, only the half without witnesses stops. If that half contains the server, no
//     witness can promise, and the run gives up the half with the witnesses after the long bound.
//     This is why witnesses are spread.
//   - A witness that dies while the server is unreachable: all other hosts lack its answer, and
//     stop after the short bound. The death of a host that is not a witness does not have this
//     effect.
//   - A host that is not a witness (because it belongs to another generation or has lost its files)
//     does not know the task, and gives neither answer.
//   - No host reaches the server: no host can promise, because promises are made in an activity.
//     All processes live up to the long bound, and the run waits for the same time.
//   - The server itself is down: its timers do not run. When it is back, it repeats the offers.
//
// A host that lost power is given up when Passed has elapsed since its last heartbeat, provided
// that one witness has contact and has not recently extended the host's leases.
package lease
