// Package taskservices answers the requests of the tasks of a host: it serves their sockets
// (package taskapi), and passes each request to the part that decides it.
//
//	a barrier across hosts        package barriers, and behind it the rounds on the server
//	a stop of all tasks           the run, which is asked until it answers
//	closures to call              the broker of the run, which has batches of its queue
//	closures to schedule          the queue of the run
//
// It knows nothing of the host that runs the tasks, and imports no Temporal: runs are behind
// [Runs], queues are asked by package closurequeue, and what the host keeps on disk of a run is
// behind [Plans].
// The services note there what the next host worker must know ([Notes]); everything else is
// in memory, and tasks ask again.
//
// [Services.Close] ends everything and waits for it. It ends the barriers across hosts first,
// because the end of a connection would withdraw an arrival.
package taskservices
