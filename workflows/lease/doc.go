// Package lease decides how long a process lives on a host that may be cut off, and when the run
// may start its task elsewhere. It is pure: it has no clock and no I/O. [Holder] is for the
// host with the process, [Witness] for each host that it asks, and [Loss] for the run. At most
// [MaxWitnesses] hosts of a generation are asked, which the run chooses when it places the
// generation; a witness asks the others.
//
// # The rules
//
// A process has a lease, which ends with SIGKILL. Its host extends it in two ways:
//
//  1. The server answers a heartbeat of the very attempt that holds the task. The lease then ends
//     the short bound after the heartbeat was sent. A host without contact gives the heartbeat to
//     the witnesses, and each of them passes it on; an answer that comes through another host is
//     an answer.
//  2. All the witnesses answer that they could not pass it on. The lease then
//     ends the short bound after they were asked, and at the latest the long bound after the last
//     answer of the server.
//
// The run declares a task lost if all of this holds:
//
//  3. The server has closed the last attempt, and its host has not taken a new offer of the task, or
//     not answered a question before it. No offer is open at this moment.
//  4. The time Passed has gone since the server can have answered for it last.
//  5. One of the witnesses has promised to answer none of rule 2 for the offers so far, and the
//     time Passed has gone since it can have done so last. Or the time LongPassed has gone since
//     the server can have answered.
//
// # Why nothing lives when a task is declared lost
//
// Suppose that a process lives then. Its lease comes from rule 1 or rule 2.
//
// Rule 1: the heartbeat was sent before the server recorded it, and the server records none for
// an attempt that is closed. So it was sent before the time in 4, and the lease has ended by the
// host's clock. It does not matter which way the heartbeat or its answer took, nor how long: the
// lease counts from the time at which it was sent.
//
// Rule 2: the witness of 5 was among those that were asked, since all of a generation are, and said
// so after it was asked, thus after the time from which the lease counts. It has said so last
// before its promise, and Passed has gone since. Without a promise the long bound after the last answer has gone. The two halves
// agree because the same host speaks to both: as long as its word keeps a process alive it has
// not promised, and after its promise its word is out.
//
// So it does not matter whether what a host says is true. A host that says that it has no contact
// although it has some, or that loses it a moment later, cannot break the argument; only its
// memory counts. The promise is on its disk before the run learns of it. Its words are in its
// memory: after a restart they count as said at the moment when it began.
//
// # The cases
//
//   - Asymmetric cuts: requests that arrive and answers that do not extend nothing on the host, and
//     make the run wait longer. Each direction of each link may fail without the other.
//   - Frozen processes: an answer that is read late extends a lease only up to a time that was
//     fixed when the question was sent. The deadline is kept by the supervisor on a clock that runs
//     while the machine is suspended. A supervisor that is frozen itself cannot kill; that is a
//     limit, as for every lease.
//   - Clocks that run differently: only lengths of time are compared. Passed allows for a
//     hundredth on the host and a hundredth on the witness.
//   - Hosts that come back: a host that takes an offer has contact, and its new offer is beyond
//     all promises. A host that comes back later gets the answer that its attempt is gone.
//   - Two halves with one controller each: only one of them has the server. The other half lacks
//     the word of a witness in the first, and stops after the short bound. If neither half has the
//     server, both stop, since each lacks the word of the other. If all witnesses are in one half, only
//     the other half stops. If the other half has the server, no witness can promise, and the run
//     gives the first half up after the long bound. So witnesses are spread.
//   - A witness that dies while the server is away: all others lack its word, and stop after the
//     short bound. Any other host may die without that.
//   - A host that is no witness (of another generation, or one that lost its files)
//     does not know the task, and answers neither.
//   - The server is reachable for no host: no host can promise, because promises are made in an
//     activity. All live up to the long bound, and the run waits for that long.
//   - The server itself is down: its timers do not run. When it is back it offers the tasks again.
//
// A host that lost power is given up Passed after its last heartbeat, if one witness has
// contact and has not spoken for it lately.
package lease
