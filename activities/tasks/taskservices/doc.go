// Package taskservices answers the requests of a host's tasks. It serves their sockets (package
// taskapi), and forwards each request to the part that decides it.
//
//	a barrier across hosts        package barriers, and behind it the rounds on the server
//	a stop of all tasks           the run, which is asked until it answers
//	closures to call              the broker of the run, which has batches of its queue
//	closures to schedule          the queue of the run
//
// It does not depend on the host that runs the tasks, nor on Temporal: [Runs] hides the runs,
// package closurequeue the queues, and [Plans] what the host keeps on disk about a run. The
// services store there what the next host worker needs ([Notes]). Everything else is in memory,
// and tasks retry.
//
// [Services.Close] stops everything and waits. It closes the barriers across hosts first, because
// closing a connection would withdraw an arrival.
package taskservices
