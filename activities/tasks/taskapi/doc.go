// Package taskapi is the API that a host offers to the programs that clusterrun runs: HTTP/1.1 with
// JSON over a Unix socket, one for each task. The socket identifies the task, so requests do not
// name their sender. openapi.yaml describes the requests; the package task is a client for Go,
// task/python for Python, and `clusterrun task` for shells.
//
// A [Server] serves all tasks of a host. It may be killed at any time; a new one then listens at
// the same paths. Clients therefore retry when a connection is refused or cut, and every request
// can be sent twice: PUT is idempotent by nature, and an arrival at a barrier has a key.
//
// # Results and errors
//
// Results and errors are written to the process's own files, so that they survive the host worker
// and the supervisor. A new result replaces the previous one, and so does a new error. If both
// exist, the exit code decides which one counts: the result if it is 0, otherwise the error.
//
// # Progress
//
// Progress is kept in memory and shown with the next heartbeat, so its rate is not limited on the
// host; our clients send ten updates a second. If a task with its own client sends updates as fast
// as it can, each costs the host worker 45 µs of processor time and nothing else: 100,000 took 6 s
// on two cores, while other tasks' local barriers kept their median of 40 µs.
//
// # Stopping together
//
// Any task can request that all of the run's tasks stop, with or without an error. The request goes
// to the run ([Stops]), which decides; the run sends every host the current state
// ([Server.SetStopping]), and the host notifies its tasks. A task can therefore check for a stop
// without asking a server. Each state has a number that grows with every stop and every clear.
// Hosts and clients ignore a state with a lower number, so that a restart does not revert anything.
//
//   - The answer to a request contains the run's state, and the host uses it immediately: the
//     requesting task sees the stop before the run has notified the host.
//   - A wait is one request, which the host answers on news, and after a minute at the latest. Our
//     clients send one such request per process, shared by all its waiters. They see every state,
//     so that they do not miss a stop that is cleared immediately.
//   - A request that the run does not answer within 50 s is refused, to be sent again.
//   - When this host releases the run, or the task's generation is over, all waiting requests
//     receive that answer.
//
// # Local barriers
//
// A barrier is local if its arrivals request that, or if the run's spec makes all barriers local.
// Other barriers go to [Barriers], if the server has them.
//
// A barrier has a name and is used in rounds. An arrival joins the open round, even from a
// restarted process. When all participants have arrived, the round is released, and the next
// arrival opens another round.
//
// Package barrier defines a round's rules, both for one host and across hosts. This package keeps
// the pending answers, and reports events to the rules:
//
//   - An arrival's timeout has expired.
//   - A connection was closed, or a process has ended: its arrivals are withdrawn, unless the
//     round was released before.
//   - A task has ended permanently. Later rounds that include it are also broken.
//   - A new generation has started: the previous one's rounds are over.
//
// A release is written to disk before any task is answered, so that the next server repeats the
// answer to an arrival if the answer was lost.
package taskapi
