// Package closurequeue is a client of a run's closure queue, package workflows/closures/queue. It
// opens the queue, sends it programs' requests until they are answered, and closes it with its
// run. Programs reach it through the task API, and a pool through its run's socket.
package closurequeue
