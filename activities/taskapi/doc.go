// Package taskapi is what programs that clusterrun runs can ask of their host:
// HTTP/1.1 with JSON over a Unix socket, one for each task. The socket is the
// identity: nothing in a request says who sends it. openapi.yaml describes the
// requests; the package task has them for Go, task/python for Python, and
// `clusterrun task` for shells.
//
// A [Server] serves all tasks of a host. It may be killed at any time and a new
// one listens at the same paths, so that clients try again when a connection is
// refused or cut, and every request can be sent twice: PUT by its nature, an
// arrival at a barrier by its key.
//
// # Results and errors
//
// They are written to the process's own files, so that they survive all of us.
// Another result replaces the one before, and so does another error. Both may be
// there: how the process exits decides which counts. With 0 the result does, else
// the error.
//
// # Progress
//
// It is kept in memory and shown with the next heartbeat, so its rate is not limited
// here; our clients send ten a second. A task that sends it as fast as it can, with a
// client of its own, costs the host worker 45 µs of processor time for each and
// nothing else: 100,000 took it 6 s, beside which local barriers of other tasks kept
// their median of 40 µs, on two cores.
//
// # Stopping together
//
// Any task can ask for all tasks of the run to stop, with an error or without one. The
// request goes to the run ([Stops]), which decides what it means; the run has every host
// told how it stands ([Server.SetStopping]), and tasks are told by their host. Whether
// to stop is therefore a question that no server has to be asked. A state of it has a
// number that grows with every stop and every clear; what has a lower one is older, for
// hosts and for clients, so that nobody goes back after a restart.
//
//   - The answer to a request, too, is how the run stands, and is known here at once: who
//     asked finds the stop before the run has told the host.
//   - A wait is one request that the host answers when there is something new, after a
//     minute at the latest. Our clients have one for each process, whoever waits in it.
//     Who waits follows every state, so that a stop is not missed that is cleared at
//     once.
//   - A request that the run does not answer within 50 s is refused, to be sent again.
//   - A task may send 20 of these at once and five a second from then on: others wait,
//     and are refused if they would have to wait longer than that.
//   - When the run is released on this host, or the task's generation is over, all
//     who wait are told so.
//
// # Local barriers
//
// A barrier is local when its arrivals ask for that, and every barrier of a run is
// whose spec says so. Others are brought to [Barriers], where there are any.
//
// A barrier has a name and is used in rounds. An arrival joins the open round,
// also that of a process that was started again. When all participants are there
// the round is released, and the next arrival opens another.
//
// Package rendezvous has the rules of a round, here as across hosts. This package
// keeps who waits for which answer, and tells the rules what happens:
//
//   - The time of an arrival has passed.
//   - A connection was closed, or a process has ended: its arrivals are withdrawn,
//     unless the round was released before.
//   - A task has ended and does not come back. Rounds that are opened with it
//     afterwards are broken, too.
//   - A new generation has begun: the rounds of the one before are over.
//
// What was released is written down before anybody is told, so that an arrival
// whose answer was lost with the server is answered the same by the next one.
package taskapi
