// Package closurequeue is a client of the queue of a run's closures, package
// workflows/closures/queue: it opens the queue, sends it the requests of programs until they are
// answered, and ends it with its run. Programs reach it through the task API, and a pool
// through the socket of its run.
package closurequeue
