// Package rundir keeps a directory for each `clusterrun run` of a user. It contains the state of
// the run's private host worker, and a record that suffices to end the run if its owner dies.
//
// The owner holds a lock in the directory while it lives. A free lock means that the owner was
// killed: the next command that connects to its server ends the rest of the run; see
// [Abandoned].
package rundir
