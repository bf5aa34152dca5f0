// Package closurequeue is a client of a run's closure queue (package workflows/closures/queue). It
// opens the queue, sends it each program's requests until they are answered, and closes it when the
// run is over. Programs reach the client through the task API, and pools reach it through their
// run's socket.
package closurequeue
