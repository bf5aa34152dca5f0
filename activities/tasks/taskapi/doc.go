// Package taskapi is the API that a host offers to the programs that clusterrun runs:
// HTTP/1.1 with JSON over a Unix socket, one for each task. The socket is the identity: no
// request says who sends it. openapi.yaml describes the requests; the package task is a
// client for Go, task/python for Python, and `clusterrun task` for shells.
//
// A [Server] serves all tasks of a host. It may be killed at any time, and a new one then
// listens at the same paths. Clients therefore retry when a connection is refused or cut, and
// every request can be sent twice: a PUT by its nature, an arrival at a barrier because of
// its key.
//
// # Results and errors
//
// They are written to the process's own files, so that they survive the host worker and the
// supervisor. A new result replaces the previous one, and so does a new error. If both exist,
// the exit code decides which one counts: the result if it is 0, else the error.
//
// # Progress
//
// Progress is kept in memory and shown with the next heartbeat, so its rate is not limited
// here; our clients send ten updates a second. If a task with a client of its own sends
// updates as fast as it can, each costs the host worker 45 µs of processor time and nothing
// else: 100,000 took 6 s on two cores, while local barriers of other tasks kept their median
// of 40 µs.
//
// # Stopping together
//
// Any task can request that all tasks of the run stop, with an error or without one. The
// request goes to the run ([Stops]), which decides; the run tells every host the current
// state ([Server.SetStopping]), and the host tells its tasks. A task can therefore check for
// a stop without asking a server. Each state has a number that grows with every stop and
// every clear. Hosts and clients ignore a state with a lower number, so that nothing goes
// back after a restart.
//
//   - The answer to a request contains the state of the run, and the host uses it at once:
//     the task that asked sees the stop before the run has told the host.
//   - A wait is one request, which the host answers when there is something new, and after a
//     minute at the latest. Our clients have one such request per process, shared by all that
//     wait in it. They see every state, so that they do not miss a stop that is cleared at
//     once.
//   - A request that the run does not answer within 50 s is refused, to be sent again.
//   - When the run is released on this host, or the task's generation is over, all waiting
//     requests are answered with that.
//
// # Local barriers
//
// A barrier is local if its arrivals ask for that, or if the spec of the run makes all
// barriers local. Other barriers go to [Barriers], if the server has them.
//
// A barrier has a name and is used in rounds. An arrival joins the open round, even if it comes
// from a process that was restarted. When all participants have arrived, the round is released,
// and the next arrival opens another round.
//
// Package barrier has the rules of a round, both here and across hosts. This package keeps
// the pending answers, and tells the rules what happens:
//
//   - The time of an arrival has passed.
//   - A connection was closed, or a process has ended: its arrivals are withdrawn, unless the
//     round was released before.
//   - A task has ended and will not return. Later rounds that include it are broken, too.
//   - A new generation has begun: the rounds of the previous one are over.
//
// A release is written to disk before any task is answered, so that the next server gives the
// same answer to an arrival whose answer was lost with the previous server.
package taskapi
