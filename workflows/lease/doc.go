// Package lease decides how long a process lives on a host that may be cut off, and when the run
// may start its task elsewhere. It is pure, without a clock or I/O. [Holder] is for the process's
// host, [Witness] for each of its witnesses, and [Loss] for the run. The run chooses at most
// [MaxWitnesses] witnesses among a generation's hosts when it places the generation. A witness asks
// the other witnesses.
//
// # The rules
//
// A process runs under a lease, and is killed with SIGKILL when the lease expires. Its host extends
// it in two ways:
//
//  1. The server answers a heartbeat of the very attempt that holds the task. The lease then
//     expires the short bound after the heartbeat was sent. A host without contact sends the
//     heartbeat to the witnesses, and each of them forwards it. An answer through another host
//     counts.
//  2. All witnesses answer that they could not forward it. The lease then expires the short bound
//     after they were asked, and at the latest the long bound after the server's last answer.
//
// The run declares a task lost if all of these conditions hold:
//
//  3. The server has closed the last attempt, and the task's host has either not accepted a new
//     offer of the task, or not answered a question before it. No offer is open at this moment.
//  4. The time Passed has elapsed since the server could last have answered for the task.
//  5. One of the witnesses has promised not to give the answer of rule 2 for the offers so far,
//     and the time Passed has elapsed since it could last have given it. Or the time LongPassed
//     has elapsed since the server could last have answered.
//
// # Why nothing lives when a task is declared lost
//
// Suppose that a process is still alive. Its lease comes from rule 1 or rule 2.
//
// Rule 1: the heartbeat was sent before the server recorded it, and the server does not record
// heartbeats of a closed attempt. So it was sent before the time in 4, and the lease has expired by
// the host's clock. The heartbeat's route and duration do not matter, nor its answer's, because the
// lease counts from the time of sending.
//
// Rule 2: the witness of 5 was asked, since all of a generation's witnesses are, and answered
// afterwards, thus after the time from which the lease counts. Its last such answer came before
// its promise, and Passed has elapsed since. Without a promise, the long bound after the last
// answer has passed. The two halves agree because the same host answers both: while its answers
// keep a process alive it has not promised, and after its promise its answers have expired.
//
// So it does not matter whether a host's answers are true. A host that reports no contact
// although it has some, or that loses contact a moment later, cannot break the argument. Only its
// memory counts. The promise is on its disk before the run receives it. Its answers are kept in
// memory: after a restart they count as given when the host started.
//
// # The cases
//
//   - Asymmetric cuts: if requests arrive but their answers do not, the host's leases are not
//     extended, and the run waits longer. Each direction of each link may fail independently.
//   - Frozen processes: an answer that is read late extends a lease only up to a time that was
//     fixed when the question was sent. The supervisor keeps the deadline on a clock that runs
//     while the machine is suspended. A frozen supervisor cannot kill, which is a limit of every
//     lease.
//   - Clocks of different speed: only durations are compared. Passed allows for one percent on
//     the host and one percent on the witness.
//   - Returning hosts: a host that accepts an offer has contact, and its new offer is not covered
//     by any promise. A host that returns later gets the answer that its attempt is gone.
//   - A network split in two: only one half contains the server. The other half lacks the answer of
//     a witness in the first, and stops after the short bound. If neither half contains the server,
//     both stop, since each lacks the other's answer. If all witnesses are in one half, only the
//     half without witnesses stops. If that other half contains the server, no witness can promise,
//     and the run gives the first half up after the long bound. So witnesses are spread.
//   - A witness that dies while the server is away: all other hosts lack its answer, and stop
//     after the short bound. Any host that is not a witness may die without this effect.
//   - A host that is not a witness (of another generation, or without its files) does not know
//     the task, and gives neither answer.
//   - No host reaches the server: no host can promise, because promises are made in an activity.
//     All processes live up to the long bound, and the run waits as long.
//   - The server itself is down: its timers do not run. When it is back, it repeats the offers.
//
// A host that lost power is given up Passed after its last heartbeat, if one witness has contact
// and has not vouched for it lately.
package lease
