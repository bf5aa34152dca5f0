// Package server implements the adapters to the Temporal server's API. A host and its tasks'
// services define what they need in their own terms, and do not import a client.
//
//	Server    heartbeats, and the runs: described, asked, cancelled
//	Barriers  the rounds of barriers, each a workflow
//	Queues    clients of the queues of closures, each a workflow
//
// Barriers and Queues provide activities that only query the server and do not affect the host:
// BarrierCheck and ClosuresCheck detect that a workflow's run has finished, and EndClosures closes
// a run's queue. Closures provides the activity that calls a queue's closures on a host, through
// the host's brokers.
//
// All adapters can be used before there is a connection ([Server.Connect]).
package server
