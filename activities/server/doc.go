// Package server has the adapters to the Temporal server's API. A host and the services of
// its tasks define what they need in their own terms, and import no client.
//
//	Server    heartbeats, and the runs: described, asked, cancelled
//	Barriers  the rounds of barriers, each a workflow
//	Queues    clients of the queues of closures, each a workflow
//
// Barriers and Queues have activities that ask the server and do not touch the host:
// BarrierCheck and ClosuresCheck, by which such a workflow learns of the end of its run, and
// EndClosures, by which a run ends its queue. Closures has the activity by which a queue
// gets closures called on a host; they connect the queue to the host's brokers.
//
// All of them can be used before there is a connection ([Server.Connect]).
package server
