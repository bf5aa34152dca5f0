// Package taskservices has what answers the tasks of a host: it serves their sockets
// (package taskapi), and brings what they ask to whoever decides it.
//
//	a barrier across hosts        package barriers, and there the rounds on the server
//	to stop together              the run, which is asked until it answers
//	closures to call              the broker of the run, which has leases of its queue
//	closures to schedule          the queue of the run
//
// It knows nothing of the host that runs the tasks, and imports no Temporal: runs and queues
// are behind [Runs] and [Queues], and what the host keeps on disk of a run is behind [Plans].
// The services note there what the next host worker must know ([Notes]); all else they hold
// in memory, and tasks ask again.
//
// [Services.Close] ends everything and waits for it, first the barriers across hosts: the end
// of a connection would take an arrival back.
package taskservices
