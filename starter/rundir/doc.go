// Package rundir keeps a directory for each `clusterrun run` of a user: the
// state of its private host worker, and a record of the run that is enough to
// end it should its owner die.
//
// The owner holds a lock in the directory for as long as it lives. A directory
// whose lock is free belongs to a run whose owner was killed: the next command
// that connects to its server ends what is left of it; see [Abandoned].
package rundir
